(** Matrices of any size, as functions of a row and a column, and their products.

    Entries outside a matrix are never read: a product names the size over which it sums. The
    other files are built on the lemmas here. *)

From Coq Require Import Reals Lra Lia.
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

(** The inner product of two vectors of k entries. *)
Definition dot (k : nat) (x y : nat -> R) : R := \sum_(l < k) (x l * y l).

(** The length of a vector of k entries. *)
Definition norm (k : nat) (x : nat -> R) : R := sqrt (dot k x x).

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
