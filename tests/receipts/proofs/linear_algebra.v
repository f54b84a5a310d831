(** Products of matrices and lengths of vectors, for any sizes.

    Proved: brackets in a product may be moved; the transpose of a product is the product of the transposes in the
    other order; a product may be cut along its inner axis and summed; tr(A B) = tr(B A); the squared Frobenius norm
    of A is tr(A^T A); and the Cauchy-Schwarz inequality.

    Assumed: entries are real.

    Not said: anything of floating-point numbers, where two orders of the same sums differ in their last digits. *)

From Coq Require Import Reals Lra Lia Arith.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** Two matrices side by side, the first with k columns. *)
Definition beside (k : nat) (A1 A2 : nat -> nat -> R) (i j : nat) : R :=
  if Nat.ltb j k then A1 i j else A2 i (j - k)%nat.

(** Two matrices one below the other, the first with k rows. *)
Definition below (k : nat) (B1 B2 : nat -> nat -> R) (i j : nat) : R :=
  if Nat.ltb i k then B1 i j else B2 (i - k)%nat j.

(** (A B) C = A (B C). *)
Theorem brackets_may_be_moved k l A B C i j :
  matmul l (matmul k A B) C i j = matmul k A (matmul l B C) i j.
Proof. apply matmul_associative. Qed.

(** (A B)^T = B^T A^T. *)
Theorem transpose_of_a_product k A B i j :
  transpose (matmul k A B) i j = matmul k (transpose B) (transpose A) i j.
Proof. unfold transpose, matmul; apply sum_ext; intros; ring. Qed.

Lemma sum_cut k l f : sum (k + l) f = sum k f + \sum_(i < l) f (k + i)%nat.
Proof.
  induction l as [|l IH]; simpl; [rewrite Nat.add_0_r; ring|].
  rewrite Nat.add_succ_r; simpl; rewrite IH; ring.
Qed.

(** A product may be cut along its inner axis: (A1 A2) times B1 above B2 is A1 B1 + A2 B2. *)
Theorem product_of_blocks k l A1 A2 B1 B2 i j :
  matmul (k + l) (beside k A1 A2) (below k B1 B2) i j = matmul k A1 B1 i j + matmul l A2 B2 i j.
Proof.
  unfold matmul; rewrite sum_cut; unfold beside, below; f_equal; apply sum_ext; intros a Ha.
  - replace (Nat.ltb a k) with true by (symmetry; apply Nat.ltb_lt, Ha); reflexivity.
  - replace (Nat.ltb (k + a) k) with false by (symmetry; apply Nat.ltb_ge; lia).
    replace (k + a - k)%nat with a by lia; reflexivity.
Qed.

(** tr(A B) = tr(B A), for A with m rows and n columns and B with n rows and m columns. *)
Theorem trace_of_a_product_turned m n A B : trace m (matmul n A B) = trace n (matmul m B A).
Proof.
  unfold trace, matmul; rewrite sum_swap; apply sum_ext; intros j _; apply sum_ext; intros i _; ring.
Qed.

(** The sum of the squares of the entries of A, with m rows and n columns, is tr(A^T A). *)
Theorem frobenius_norm_is_a_trace m n A :
  \sum_(i < m) (\sum_(j < n) A i j ^ 2) = trace n (matmul m (transpose A) A).
Proof.
  rewrite sum_swap; unfold trace, matmul, transpose; apply sum_ext; intros j _; apply sum_ext; intros i _; ring.
Qed.

Lemma dot_of_a_difference k u v t :
  dot k (fun i => u i - t * v i) (fun i => u i - t * v i) = dot k u u - 2 * t * dot k u v + t ^ 2 * dot k v v.
Proof.
  unfold dot; rewrite <- !sum_scale_l, <- sum_minus, <- sum_plus; apply sum_ext; intros; ring.
Qed.

(** The Cauchy-Schwarz inequality: the inner product of two vectors is, without its sign, at most the product
    of their norms. *)
Theorem cauchy_schwarz k u v : Rabs (dot k u v) <= norm k u * norm k v.
Proof.
  pose proof (dot_self_nonneg k u) as Hu; pose proof (dot_self_nonneg k v) as Hv.
  unfold norm; rewrite <- sqrt_mult, <- sqrt_Rsqr_abs by assumption.
  apply sqrt_le_1_alt; unfold Rsqr.
  destruct Hv as [positive | zero].
  - pose proof (dot_self_nonneg k (fun i => u i - dot k u v / dot k v v * v i)) as gap.
    rewrite dot_of_a_difference in gap.
    apply (Rmult_le_compat_r (dot k v v)) in gap; [|lra].
    replace ((dot k u u - 2 * (dot k u v / dot k v v) * dot k u v + (dot k u v / dot k v v) ^ 2 * dot k v v)
             * dot k v v)
      with (dot k u u * dot k v v - dot k u v * dot k u v) in gap by (field; lra).
    lra.
  - assert (entries : forall i, (i < k)%nat -> v i = 0).
    { intros i Hi; apply Rsqr_0_uniq, (sum_nonneg_zero k (fun j => v j * v j)); [|symmetry; exact zero | exact Hi].
      intros; apply Rle_0_sqr. }
    replace (dot k u v) with 0; [rewrite <- zero; lra|].
    symmetry; apply sum_zero; intros i Hi; rewrite entries by exact Hi; ring.
Qed.
