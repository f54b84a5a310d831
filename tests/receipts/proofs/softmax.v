(** Softmax and log-sum-exp of any finite vector of reals.

    Proved: softmax is positive and sums to one, does not change when the same number is added to
    all scores, and changes when they are scaled; the ratio of two probabilities; log-sum-exp can
    be shifted, and lies between the maximum and the maximum plus ln n; the Jacobian of softmax,
    and the gradient p - y of the cross-entropy behind it.

    Assumed: the scores are real numbers, and there are n >= 1 of them. Where an index i < n is
    named, n >= 1 follows from it.

    Not said: anything about floating-point numbers. A program's softmax overflows, underflows and
    rounds; that the course's function stays near these formulas is tested with numbers elsewhere.
    Nor does a theorem here say that a trained model's probabilities are good forecasts. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums gibbs.
Open Scope R_scope.

(** The softmax of n scores z: the exponential of each over the sum of all exponentials. *)
Definition softmax (n : nat) (z : nat -> R) (i : nat) : R :=
  exp (z i) / (\sum_(j < n) exp (z j)).

(** The log-sum-exp of n scores z. *)
Definition log_sum_exp (n : nat) (z : nat -> R) : R := ln (\sum_(i < n) exp (z i)).

Lemma exps_positive n z : (0 < n)%nat -> 0 < \sum_(j < n) exp (z j).
Proof. intros Hn; apply sum_positive; [exact Hn|]; intros; apply exp_pos. Qed.

(** Every probability that softmax gives is above zero. *)
Theorem softmax_positive n z i : (i < n)%nat -> 0 < softmax n z i.
Proof. intros Hi; apply Rdiv_lt_0_compat; [apply exp_pos | apply exps_positive; lia]. Qed.

(** The softmax of any finite non-empty vector of reals sums to one. *)
Theorem softmax_sums_to_one n z : (0 < n)%nat -> \sum_(i < n) softmax n z i = 1.
Proof.
  intros Hn; unfold softmax; rewrite sum_divide.
  pose proof (exps_positive n z Hn); field; lra.
Qed.

(** Softmax turns any finite non-empty vector of reals into probabilities: all are positive and they sum to one. *)
Theorem softmax_is_a_distribution n z :
  (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < softmax n z i) /\ \sum_(i < n) softmax n z i = 1.
Proof. intros Hn; split; [intros i; apply softmax_positive | apply softmax_sums_to_one, Hn]. Qed.

(** Adding the same number c to all scores does not change their softmax. *)
Theorem softmax_shift_invariant n z c i :
  (0 < n)%nat -> softmax n (fun j => z j + c) i = softmax n z i.
Proof.
  intros Hn; unfold softmax.
  rewrite (sum_ext n (fun j => exp (z j + c)) (fun j => exp (z j) * exp c)) by (intros; apply exp_plus).
  rewrite sum_scale_r, exp_plus.
  pose proof (exps_positive n z Hn); pose proof (exp_pos c); field; lra.
Qed.

Lemma softmax_ratio n z i j :
  (i < n)%nat -> (j < n)%nat -> softmax n z i / softmax n z j = exp (z i - z j).
Proof.
  intros Hi Hj; unfold softmax, Rminus; rewrite exp_plus, exp_Ropp.
  pose proof (exps_positive n z ltac:(lia)); pose proof (exp_pos (z j)); field; lra.
Qed.

(** The ratio of two probabilities is the exponential of the difference of their scores, and scaling the scores by a
    raises it to the power a. *)
Theorem softmax_odds n z a i j :
  (i < n)%nat -> (j < n)%nat ->
  softmax n z i / softmax n z j = exp (z i - z j)
  /\ softmax n (fun k => a * z k) i / softmax n (fun k => a * z k) j
     = Rpower (softmax n z i / softmax n z j) a.
Proof.
  intros Hi Hj; rewrite !softmax_ratio by assumption; split; [reflexivity|].
  unfold Rpower; rewrite ln_exp; f_equal; ring.
Qed.

(** If two of the scores differ, scaling all scores by any a other than 1 changes their softmax. *)
Theorem softmax_changes_with_scale n z a i j :
  (i < n)%nat -> (j < n)%nat -> z i <> z j -> a <> 1 ->
  ~ (forall k, (k < n)%nat -> softmax n (fun l => a * z l) k = softmax n z k).
Proof.
  intros Hi Hj differ scaled same.
  pose proof (softmax_ratio n (fun l => a * z l) i j Hi Hj) as ratio.
  rewrite !same, softmax_ratio in ratio by assumption.
  apply exp_inv in ratio.
  apply scaled, (Rmult_eq_reg_r (z i - z j)); lra.
Qed.

(** Softmax is not scale-invariant: ten times the scores 2, 1, 0 have another softmax. *)
Theorem softmax_not_scale_invariant :
  let z := fun i => 2 - INR i in
  exists i, (i < 3)%nat /\ softmax 3 (fun j => 10 * z j) i <> softmax 3 z i.
Proof.
  intros z.
  destruct (Req_dec (softmax 3 (fun j => 10 * z j) 0) (softmax 3 z 0)) as [same0|]; [|exists 0%nat; auto].
  destruct (Req_dec (softmax 3 (fun j => 10 * z j) 1) (softmax 3 z 1)) as [same1|]; [|exists 1%nat; auto].
  exists 2%nat; split; [auto|]; intros same2.
  apply (softmax_changes_with_scale 3 z 10 0 1); [lia | lia | unfold z; simpl; lra | lra |].
  intros [|[|[|k]]] Hk; [assumption..|lia].
Qed.

(** The softmax of the scores 5, 4 is that of the scores 2, 1: only differences count. *)
Theorem softmax_five_four_is_two_one i :
  softmax 2 (fun j => 5 - INR j) i = softmax 2 (fun j => 2 - INR j) i.
Proof.
  rewrite <- (softmax_shift_invariant 2 (fun j => 2 - INR j) 3 i) by lia.
  assert (shift : forall j, exp (2 - INR j + 3) = exp (5 - INR j)) by (intros; f_equal; ring).
  unfold softmax; rewrite shift; f_equal.
  apply sum_ext; intros; symmetry; apply shift.
Qed.

(** A log-sum-exp can be computed from scores shifted by any c, such as their maximum. *)
Theorem log_sum_exp_shift n z c :
  (0 < n)%nat -> log_sum_exp n z = c + log_sum_exp n (fun i => z i - c).
Proof.
  intros Hn; unfold log_sum_exp.
  rewrite <- (ln_exp c) at 1.
  rewrite <- ln_mult by (apply exp_pos || apply exps_positive, Hn).
  rewrite <- sum_scale_l; f_equal; apply sum_ext; intros i _.
  rewrite <- exp_plus; f_equal; ring.
Qed.

(** If z k is the largest of n scores, their log-sum-exp lies between z k and z k + ln n. *)
Theorem log_sum_exp_bounds n z k :
  (k < n)%nat -> (forall i, (i < n)%nat -> z i <= z k) ->
  z k <= log_sum_exp n z <= z k + ln (INR n).
Proof.
  intros Hk largest; unfold log_sum_exp.
  assert (0 < INR n) by (apply lt_0_INR; lia).
  assert (entry : exp (z k) <= \sum_(i < n) exp (z i)).
  { apply (sum_ge_entry n (fun i => exp (z i))); [intros; apply Rlt_le, exp_pos | exact Hk]. }
  assert (total : \sum_(i < n) exp (z i) <= INR n * exp (z k)).
  { rewrite <- sum_const; apply sum_le; intros i Hi.
    destruct (largest i Hi) as [less | ->]; [apply Rlt_le, exp_increasing, less | lra]. }
  split.
  - rewrite <- (ln_exp (z k)); apply ln_le; [apply exp_pos | exact entry].
  - rewrite <- (ln_exp (z k)), Rplus_comm, <- ln_mult by (assumption || apply exp_pos).
    apply ln_le; [apply exps_positive; lia | exact total].
Qed.

(** The logarithm of a probability is its score less the log-sum-exp of all scores. *)
Theorem log_softmax n z i : (i < n)%nat -> ln (softmax n z i) = z i - log_sum_exp n z.
Proof.
  intros Hi; unfold softmax, log_sum_exp.
  rewrite ln_div by (apply exp_pos || (apply exps_positive; lia)).
  rewrite ln_exp; reflexivity.
Qed.

Lemma derive_exps n z j :
  (j < n)%nat -> is_derive (fun t => \sum_(k < n) exp (with_entry z j t k)) (z j) (exp (z j)).
Proof.
  intros Hj.
  rewrite <- (sum_delta n (fun k => exp (z k)) j Hj).
  apply (derive_sum n (fun k t => exp (with_entry z j t k))); intros k Hk.
  rewrite <- (with_entry_same z j k).
  apply (is_derive_comp exp (fun t => with_entry z j t k)); [apply is_derive_exp | apply derive_with_entry].
Qed.

(** The Jacobian of softmax: the derivative of p_i by the score z_j is p_i (delta_ij - p_j), for any number of scores. *)
Theorem softmax_jacobian n z i j :
  (i < n)%nat -> (j < n)%nat ->
  is_derive (fun t => softmax n (with_entry z j t) i) (z j)
    (softmax n z i * (delta i j - softmax n z j)).
Proof.
  intros Hi Hj.
  pose proof (exps_positive n z ltac:(lia)) as positive.
  assert (here : \sum_(k < n) exp (with_entry z j (z j) k) = \sum_(k < n) exp (z k)).
  { apply sum_ext; intros; rewrite with_entry_same; reflexivity. }
  unfold softmax at 1; evar_last.
  - apply is_derive_div.
    + apply (is_derive_comp exp (fun t => with_entry z j t i)); [apply is_derive_exp | apply derive_with_entry].
    + apply derive_exps, Hj.
    + rewrite here; lra.
  - cbv beta; rewrite here, with_entry_same; unfold softmax, scal; simpl; unfold mult; simpl; field; lra.
Qed.

Lemma derive_log_sum_exp n z j :
  (j < n)%nat -> is_derive (fun t => log_sum_exp n (with_entry z j t)) (z j) (softmax n z j).
Proof.
  intros Hj; unfold log_sum_exp.
  pose proof (exps_positive n z ltac:(lia)) as positive.
  assert (here : \sum_(k < n) exp (with_entry z j (z j) k) = \sum_(k < n) exp (z k)).
  { apply sum_ext; intros; rewrite with_entry_same; reflexivity. }
  evar_last.
  - apply (is_derive_comp ln (fun t => \sum_(k < n) exp (with_entry z j t k))).
    + apply is_derive_ln; rewrite here; exact positive.
    + apply derive_exps, Hj.
  - cbv beta; rewrite here; unfold softmax, scal; simpl; unfold mult; simpl; field; lra.
Qed.

(** The gradient of the cross-entropy by the score z_j is p_j - y_j, for any y that sums to one. *)
Theorem cross_entropy_gradient n y z j :
  (j < n)%nat -> \sum_(i < n) y i = 1 ->
  is_derive (fun t => cross_entropy n y (softmax n (with_entry z j t))) (z j)
    (softmax n z j - y j).
Proof.
  intros Hj one; change (sum n y = 1) in one.
  apply (is_derive_ext (fun t => log_sum_exp n (with_entry z j t) - \sum_(i < n) (y i * with_entry z j t i))).
  { intros t; in_reals; unfold cross_entropy.
    rewrite (sum_ext n (fun i => y i * ln (softmax n (with_entry z j t) i))
                       (fun i => y i * with_entry z j t i - y i * log_sum_exp n (with_entry z j t))).
    - rewrite sum_minus, sum_scale_r, one; ring.
    - intros i Hi; rewrite log_softmax by exact Hi; ring. }
  apply (is_derive_minus (fun t => log_sum_exp n (with_entry z j t)) (fun t => \sum_(i < n) (y i * with_entry z j t i))).
  - apply derive_log_sum_exp, Hj.
  - rewrite <- (sum_delta n y j Hj).
    apply (derive_sum n (fun i t => y i * with_entry z j t i)); intros i Hi.
    rewrite Rmult_comm; apply is_derive_scal, derive_with_entry.
Qed.
