(** Gradients of functions of a matrix, for matrices of any size.

    A function f has the gradient G at X if its derivative along every straight line X + t D is the sum of
    G_ij D_ij.

    Proved: the gradient of tr(A X) is A^T; that of the squared Frobenius norm of X is 2 X; and if a loss has the
    gradient G at A X B, then as a function of X it has the gradient A^T G B^T.

    Assumed: entries are real; the loss has a gradient in this sense.

    Not said: that a given loss has one, for example where an activation has a kink. *)

From Coq Require Import Reals Lra Lia FunctionalExtensionality.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** The sum of the products of the entries of two matrices with m rows and n columns. *)
Definition entrywise (m n : nat) (G D : nat -> nat -> R) : R := \sum_(i < m) (\sum_(j < n) (G i j * D i j)).

(** The matrix X moved by t along D. *)
Definition along (X D : nat -> nat -> R) (t : R) (i j : nat) : R := X i j + t * D i j.

(** f has the gradient G at X: along every D its derivative is the sum of G_ij D_ij. *)
Definition has_gradient (m n : nat) (f : (nat -> nat -> R) -> R) (X G : nat -> nat -> R) : Prop :=
  forall D, is_derive (fun t => f (along X D t)) 0 (entrywise m n G D).

Lemma matmul_along_r m A X D t : matmul m A (along X D t) = along (matmul m A X) (matmul m A D) t.
Proof.
  apply functional_extensionality; intros i; apply functional_extensionality; intros j.
  unfold matmul, along; rewrite <- sum_scale_l, <- sum_plus; apply sum_ext; intros; ring.
Qed.

Lemma matmul_along_l n X D B t : matmul n (along X D t) B = along (matmul n X B) (matmul n D B) t.
Proof.
  apply functional_extensionality; intros i; apply functional_extensionality; intros j.
  unfold matmul, along; rewrite <- sum_scale_l, <- sum_plus; apply sum_ext; intros; ring.
Qed.

Lemma derive_line a b : is_derive (fun t => a + t * b) 0 b.
Proof. auto_derive; [exact I | ring]. Qed.

(** The gradient of tr(A X) in X is A^T. *)
Theorem gradient_of_a_trace m n A X :
  has_gradient m n (fun Y => trace n (matmul m A Y)) X (transpose A).
Proof.
  intros D.
  apply (is_derive_ext (fun t => trace n (matmul m A X) + t * trace n (matmul m A D))).
  { intros t; in_reals; rewrite matmul_along_r; unfold trace, along.
    rewrite <- sum_scale_l, <- sum_plus; reflexivity. }
  replace (entrywise m n (transpose A) D) with (trace n (matmul m A D)); [apply derive_line|].
  unfold entrywise, trace, matmul, transpose; apply sum_swap.
Qed.

(** The gradient of the squared Frobenius norm of X is 2 X. *)
Theorem gradient_of_the_squared_norm m n X :
  has_gradient m n (fun Y => entrywise m n Y Y) X (fun i j => 2 * X i j).
Proof.
  intros D; unfold entrywise.
  apply (derive_sum m (fun i t => \sum_(j < n) (along X D t i j * along X D t i j))); intros i _.
  apply (derive_sum n (fun j t => along X D t i j * along X D t i j)); intros j _.
  unfold along; auto_derive; [exact I | ring].
Qed.

(** If a loss has the gradient G at A X B, its gradient in X is A^T G B^T. *)
Theorem gradient_of_axb m n r s loss A X B G :
  has_gradient r s loss (matmul n (matmul m A X) B) G ->
  has_gradient m n (fun Y => loss (matmul n (matmul m A Y) B)) X
    (matmul s (matmul r (transpose A) G) (transpose B)).
Proof.
  intros gradient D.
  replace (entrywise m n _ D) with (entrywise r s G (matmul n (matmul m A D) B)).
  - apply (is_derive_ext (fun t => loss (along (matmul n (matmul m A X) B) (matmul n (matmul m A D) B) t))).
    + intros t; rewrite <- matmul_along_l, <- matmul_along_r; reflexivity.
    + apply gradient.
  - transitivity (\sum_(a < m) (\sum_(b < n) (\sum_(j < s) (\sum_(i < r) (A i a * G i j * B b j * D a b))))).
    + unfold entrywise, matmul.
      rewrite sum_swap.
      rewrite (sum_ext s _ (fun j => \sum_(a < m) (\sum_(b < n) (\sum_(i < r) (A i a * G i j * B b j * D a b))))).
      * rewrite sum_swap; apply sum_ext; intros a _; apply sum_swap.
      * intros j _.
        rewrite (sum_ext r _ (fun i => \sum_(a < m) (\sum_(b < n) (A i a * G i j * B b j * D a b)))).
        { rewrite sum_swap; apply sum_ext; intros a _; apply sum_swap. }
        intros i _; rewrite <- sum_scale_l.
        rewrite (sum_ext n _ (fun b => \sum_(a < m) (A i a * G i j * B b j * D a b))); [apply sum_swap|].
        intros b _; rewrite <- sum_scale_r, <- sum_scale_l; apply sum_ext; intros; ring.
    + unfold entrywise, matmul, transpose; apply sum_ext; intros a _; apply sum_ext; intros b _.
      rewrite <- sum_scale_r; apply sum_ext; intros j _.
      rewrite <- !sum_scale_r; reflexivity.
Qed.
