(** Low-rank adaptation (LoRA): W x + (alpha / r) B (A x).

    Proved: with B = 0 the adapted map is the map before, and merging the update into the weights,
    W + (alpha / r) B A, gives the same outputs. Matrices have any size.

    Assumed: entries are real.

    Not said: that a low rank is enough for a task, or how training goes. A merged program rounds differently
    from an unmerged one, more so in 16 bits. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums matrices.
Open Scope R_scope.

(** The adapted map of an input with k entries: rank r, scale alpha / r. *)
Definition lora (k r : nat) (alpha : R) (W B A : nat -> nat -> R) (x : nat -> R) (i : nat) : R :=
  apply_matrix k W x i + alpha / INR r * apply_matrix r B (apply_matrix k A x) i.

(** With B = 0, as training starts, the adapted map is the map before, whatever A is. *)
Theorem lora_starts_at_the_old_map k r alpha W B A x i :
  (forall l, B i l = 0) -> lora k r alpha W B A x i = apply_matrix k W x i.
Proof.
  intros zero; unfold lora; replace (apply_matrix r B _ i) with 0; [ring|].
  symmetry; apply sum_zero; intros l _; rewrite zero; ring.
Qed.

(** Merging is exact: W x + (alpha / r) B (A x) = (W + (alpha / r) B A) x. *)
Theorem lora_merges_exactly k r alpha W B A x i :
  lora k r alpha W B A x i
  = apply_matrix k (fun a b => W a b + alpha / INR r * matmul r B A a b) x i.
Proof.
  pose proof (matmul_associative r k B A (fun a _ => x a) i 0) as same; unfold matmul in same.
  unfold lora, apply_matrix, matmul; rewrite <- same, <- sum_scale_l, <- sum_plus.
  apply sum_ext; intros; ring.
Qed.
