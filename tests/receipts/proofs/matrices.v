(** Matrices of any size, as functions of a row and a column, and their products.

    Entries outside a matrix are never read: a product names the size over which it sums. The
    other files are built on the lemmas here. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums.
Open Scope R_scope.

(** The product of A (with k columns) and B (with k rows). *)
Definition matmul (k : nat) (A B : nat -> nat -> R) (i j : nat) : R :=
  \sum_(l < k) (A i l * B l j).

(** The matrix with rows and columns exchanged. *)
Definition transpose (A : nat -> nat -> R) (i j : nat) : R := A j i.

(** The product of A (with k columns) and a vector of k entries. *)
Definition apply_matrix (k : nat) (A : nat -> nat -> R) (x : nat -> R) (i : nat) : R :=
  \sum_(l < k) (A i l * x l).

(** The trace of a square matrix with n rows. *)
Definition trace (n : nat) (A : nat -> nat -> R) : R := \sum_(i < n) A i i.

(** The inner product of two vectors of k entries. *)
Definition dot (k : nat) (x y : nat -> R) : R := \sum_(l < k) (x l * y l).

(** The length of a vector of k entries. *)
Definition norm (k : nat) (x : nat -> R) : R := sqrt (dot k x x).

(** The matrix X with its entry in row a and column b replaced by t. *)
Definition with_matrix_entry (X : nat -> nat -> R) (a b : nat) (t : R) (i j : nat) : R :=
  if Nat.eqb i a then with_entry (X i) b t j else X i j.

Lemma matmul_associative k l A B C i j :
  matmul l (matmul k A B) C i j = matmul k A (matmul l B C) i j.
Proof.
  unfold matmul.
  rewrite (sum_ext l _ (fun b => \sum_(a < k) (A i a * B a b * C b j))) by (intros; symmetry; apply sum_scale_r).
  rewrite sum_swap; apply sum_ext; intros a _.
  rewrite <- sum_scale_l; apply sum_ext; intros b _; ring.
Qed.

Lemma dot_self_nonneg k x : 0 <= dot k x x.
Proof. apply sum_nonneg; intros; apply Rle_0_sqr. Qed.

Lemma derive_with_matrix_entry X a b i j x :
  is_derive (fun t => with_matrix_entry X a b t i j) x (delta i a * delta j b).
Proof.
  unfold with_matrix_entry; destruct (Nat.eq_dec i a) as [->|other].
  - rewrite Nat.eqb_refl, delta_same, Rmult_1_l; apply derive_with_entry.
  - rewrite delta_other, Rmult_0_l by exact other.
    apply Nat.eqb_neq in other; rewrite other; apply (is_derive_const (X i j) x).
Qed.

Lemma sum_delta_2 m n f a b :
  (a < m)%nat -> (b < n)%nat -> \sum_(i < m) (\sum_(j < n) (delta i a * delta j b * f i j)) = f a b.
Proof.
  intros Ha Hb.
  rewrite (sum_ext m _ (fun i => delta i a * f i b)).
  - apply (sum_delta m (fun i => f i b)), Ha.
  - intros i _; rewrite <- (sum_delta n (f i) b Hb), <- sum_scale_l; apply sum_ext; intros; ring.
Qed.
