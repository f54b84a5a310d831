(** Attention of one query: weights alpha, the softmax of the scores, and the output o = sum of alpha_j v_j.

    Proved: each coordinate of the output lies between the smallest and the largest of the values'; the
    derivative of the output by a value is that value's weight; the norm of one key's contribution is
    its weight times the norm of its value; and of two scores the larger has a weight of at least p
    exactly if the gap is at least ln(p / (1 - p)), for 0.99 at least ln 99.

    Assumed: scores and values are real and there is at least one key.

    Not said: what a trained model's weights mean, or that a key with a large weight matters for the
    answer. Rounding may carry an output past the values by a little. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums matrices softmax.
Open Scope R_scope.

(** The output of one query with n scores s: coordinate c of the average of the values v. *)
Definition output (n : nat) (s : nat -> R) (v : nat -> nat -> R) (c : nat) : R :=
  \sum_(j < n) (softmax n s j * v j c).

(** Each coordinate of the output lies between any bounds of the values' coordinates. *)
Theorem outputs_stay_among_the_values n s v c low high :
  (0 < n)%nat -> (forall j, (j < n)%nat -> low <= v j c <= high) -> low <= output n s v c <= high.
Proof.
  intros Hn between; pose proof (softmax_sums_to_one n s Hn) as one.
  change (sum n (softmax n s) = 1) in one.
  assert (edge : forall b, \sum_(j < n) (softmax n s j * b) = b) by (intros; rewrite sum_scale_r, one; ring).
  unfold output; split; [rewrite <- (edge low) | rewrite <- (edge high)];
    apply sum_le; intros j Hj; (apply Rmult_le_compat_l; [apply Rlt_le, softmax_positive, Hj | apply between, Hj]).
Qed.

(** The derivative of the output's coordinate c by the coordinate b of the value v_j is alpha_j if b is c, else 0. *)
Theorem derivative_by_a_value n s v j b c :
  (j < n)%nat ->
  is_derive (fun t => output n s (with_matrix_entry v j b t) c) (v j b) (softmax n s j * delta b c).
Proof.
  intros Hj; rewrite (Rmult_comm (softmax n s j)), (delta_sym b c).
  rewrite <- (sum_delta n (fun i => delta c b * softmax n s i) j Hj).
  apply (derive_sum n (fun i t => softmax n s i * with_matrix_entry v j b t i c)); intros i _.
  replace (delta i j * (delta c b * softmax n s i)) with (softmax n s i * (delta i j * delta c b)) by ring.
  apply is_derive_scal, derive_with_matrix_entry.
Qed.

(** The norm of one key's contribution is its weight times the norm of its value, in any width d. *)
Theorem norm_of_a_contribution n d s v j :
  (j < n)%nat -> norm d (fun c => softmax n s j * v j c) = softmax n s j * norm d (v j).
Proof.
  intros Hj; unfold norm.
  replace (dot d (fun c => softmax n s j * v j c) (fun c => softmax n s j * v j c))
    with (Rsqr (softmax n s j) * dot d (v j) (v j)).
  - rewrite sqrt_mult by (apply Rle_0_sqr || apply dot_self_nonneg).
    rewrite sqrt_Rsqr by (apply Rlt_le, softmax_positive, Hj); reflexivity.
  - unfold dot; rewrite <- sum_scale_l; apply sum_ext; intros; unfold Rsqr; ring.
Qed.

(** Of two scores that are x apart, the larger has a weight of at least p exactly if x is at least ln(p / (1 - p)). *)
Theorem sigmoid_at_least p x : 0 < p < 1 -> (p <= 1 / (1 + exp (- x)) <-> ln (p / (1 - p)) <= x).
Proof.
  intros Hp.
  assert (odds : 0 < p / (1 - p)) by (apply Rdiv_lt_0_compat; lra).
  pose proof (exp_pos (- x)) as positive.
  assert (first : p <= 1 / (1 + exp (- x)) <-> exp (- x) <= (1 - p) / p).
  { split; intros le.
    - apply (Rmult_le_compat_r (1 + exp (- x))) in le; [|lra].
      replace (1 / (1 + exp (- x)) * (1 + exp (- x))) with 1 in le by (field; lra).
      apply (Rmult_le_reg_l p); [lra|].
      replace (p * ((1 - p) / p)) with (1 - p) by (field; lra); lra.
    - apply (Rmult_le_reg_r (1 + exp (- x))); [lra|].
      replace (1 / (1 + exp (- x)) * (1 + exp (- x))) with 1 by (field; lra).
      apply (Rmult_le_compat_l p) in le; [|lra].
      replace (p * ((1 - p) / p)) with (1 - p) in le by (field; lra); lra. }
  rewrite first.
  replace ((1 - p) / p) with (exp (- ln (p / (1 - p)))) by (rewrite exp_Ropp, exp_ln by exact odds; field; lra).
  split; intros le.
  - destruct le as [less | same]; [apply exp_lt_inv in less | apply exp_inv in same]; lra.
  - destruct le as [less | same]; [apply Rlt_le, exp_increasing; lra | rewrite same; lra].
Qed.

(** Of two scores that are a gap g apart, scaled by c, the larger has a weight of at least 0.99 exactly if c g is at
    least ln 99. *)
Theorem saturation_needs_a_gap c g : 0.99 <= 1 / (1 + exp (- (c * g))) <-> ln 99 <= c * g.
Proof.
  rewrite sigmoid_at_least by lra.
  replace 0.99 with (99 / 100) by lra.
  replace (99 / 100 / (1 - 99 / 100)) with 99 by (field; lra); reflexivity.
Qed.
