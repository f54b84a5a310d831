(** The power law p(d) proportional to d^(-gamma) on the distances 1 .. N: Fisher information and heat capacity.

    Proved: the slope of ln p(d) in gamma is E[ln d] - ln d; the Fisher information about gamma, the expected
    square of that slope, is Var(ln d); the mean of ln d falls with gamma at the rate Var(ln d), so
    the heat capacity C_V = - gamma^2 d E[ln d] / d gamma is gamma^2 Var(ln d), and the Fisher
    information is C_V / gamma^2.

    Assumed: N >= 1 is whole and gamma is real. Energy is ln d and inverse temperature is gamma: that is a
    choice of words, and with it the last identity is one between two names of Var(ln d).

    Not said: that attention follows a power law, or that a model has a temperature. Nothing here is
    a measurement. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums.
Open Scope R_scope.

(** The distance with the index i: 1, 2, …, N for i = 0, …, N - 1. *)
Definition distance (i : nat) : R := INR (S i).

(** The normaliser: the sum of d^(-gamma) over 1 .. N. *)
Definition partition (N : nat) (gamma : R) : R := \sum_(i < N) Rpower (distance i) (- gamma).

(** The power law: p(d) = d^(-gamma) over the normaliser. *)
Definition power_law (N : nat) (gamma : R) (i : nat) : R :=
  Rpower (distance i) (- gamma) / partition N gamma.

(** The expectation of f under the power law. *)
Definition expectation (N : nat) (gamma : R) (f : nat -> R) : R :=
  \sum_(i < N) (power_law N gamma i * f i).

(** The mean of ln d. *)
Definition mean_log (N : nat) (gamma : R) : R := expectation N gamma (fun i => ln (distance i)).

(** The variance of ln d. *)
Definition variance_log (N : nat) (gamma : R) : R :=
  expectation N gamma (fun i => (ln (distance i) - mean_log N gamma) ^ 2).

(** The Fisher information about gamma: the expected square of the slope of ln p(d) in gamma. *)
Definition fisher_information (N : nat) (gamma : R) : R :=
  expectation N gamma (fun i => Derive (fun g => ln (power_law N g i)) gamma ^ 2).

(** The heat capacity with energy ln d and inverse temperature gamma. *)
Definition heat_capacity (N : nat) (gamma : R) : R := - gamma ^ 2 * Derive (mean_log N) gamma.

Lemma partition_positive N gamma : (0 < N)%nat -> 0 < partition N gamma.
Proof. intros HN; apply sum_positive; [exact HN|]; intros; apply exp_pos. Qed.

Lemma derive_power i gamma :
  is_derive (fun g => Rpower (distance i) (- g)) gamma (- ln (distance i) * Rpower (distance i) (- gamma)).
Proof. unfold Rpower; auto_derive; [exact I | ring]. Qed.

Lemma derive_partition N gamma :
  (0 < N)%nat -> is_derive (partition N) gamma (- mean_log N gamma * partition N gamma).
Proof.
  intros HN; pose proof (partition_positive N gamma HN).
  replace (- mean_log N gamma * partition N gamma)
    with (\sum_(i < N) (- ln (distance i) * Rpower (distance i) (- gamma))).
  - apply (derive_sum N (fun i g => Rpower (distance i) (- g))); intros; apply derive_power.
  - unfold mean_log, expectation, power_law.
    rewrite <- sum_opp, <- sum_scale_r; apply sum_ext; intros i _; field; lra.
Qed.

(** The probabilities of the power law are positive and sum to 1. *)
Theorem power_law_is_a_distribution N gamma :
  (0 < N)%nat -> (forall i, 0 < power_law N gamma i) /\ \sum_(i < N) power_law N gamma i = 1.
Proof.
  intros HN; pose proof (partition_positive N gamma HN); split.
  - intros i; apply Rdiv_lt_0_compat; [apply exp_pos | assumption].
  - unfold power_law; rewrite sum_divide; fold (partition N gamma); field; lra.
Qed.

(** The slope of ln p(d) in gamma is E[ln d] - ln d. *)
Theorem power_law_score N gamma i :
  (0 < N)%nat ->
  is_derive (fun g => ln (power_law N g i)) gamma (mean_log N gamma - ln (distance i)).
Proof.
  intros HN; pose proof (partition_positive N gamma HN).
  apply (is_derive_ext (fun g => - g * ln (distance i) - ln (partition N g))).
  { intros g; in_reals; unfold power_law.
    rewrite ln_div by (apply exp_pos || apply partition_positive, HN).
    unfold Rpower; rewrite ln_exp; reflexivity. }
  evar_last.
  - apply (is_derive_minus (fun g => - g * ln (distance i)) (fun g => ln (partition N g))).
    + auto_derive; [exact I | reflexivity].
    + apply (is_derive_comp ln (partition N)); [apply is_derive_ln; assumption | apply derive_partition, HN].
  - unfold minus, plus, opp, scal; simpl; unfold mult; simpl; field; lra.
Qed.

(** The Fisher information about gamma is the variance of ln d. *)
Theorem fisher_information_is_variance N gamma :
  (0 < N)%nat -> fisher_information N gamma = variance_log N gamma.
Proof.
  intros HN; unfold fisher_information, variance_log, expectation.
  apply sum_ext; intros i _.
  assert (slope : Derive (fun g => ln (power_law N g i)) gamma = mean_log N gamma - ln (distance i))
    by apply is_derive_unique, power_law_score, HN.
  rewrite slope; ring.
Qed.

Lemma derive_power_law N gamma i :
  (0 < N)%nat ->
  is_derive (fun g => power_law N g i) gamma
    (power_law N gamma i * (mean_log N gamma - ln (distance i))).
Proof.
  intros HN; pose proof (partition_positive N gamma HN); unfold power_law; evar_last.
  - apply is_derive_div; [apply derive_power | apply derive_partition, HN | lra].
  - in_reals; cbv beta; field; lra.
Qed.

Lemma variance_by_squares N gamma :
  (0 < N)%nat ->
  variance_log N gamma = expectation N gamma (fun i => ln (distance i) ^ 2) - mean_log N gamma ^ 2.
Proof.
  intros HN; destruct (power_law_is_a_distribution N gamma HN) as [_ one].
  change (sum N (power_law N gamma) = 1) in one.
  unfold variance_log; set (mu := mean_log N gamma).
  unfold expectation.
  rewrite (sum_ext N _ (fun i => power_law N gamma i * ln (distance i) ^ 2
                                 - 2 * mu * (power_law N gamma i * ln (distance i))
                                 + mu ^ 2 * power_law N gamma i)) by (intros; ring).
  rewrite sum_plus, sum_minus, !sum_scale_l, one.
  fold (expectation N gamma (fun i => ln (distance i))); fold (mean_log N gamma); fold mu; ring.
Qed.

(** The mean of ln d falls with gamma at the rate Var(ln d). *)
Theorem mean_log_falls N gamma :
  (0 < N)%nat -> is_derive (mean_log N) gamma (- variance_log N gamma).
Proof.
  intros HN; rewrite (variance_by_squares N gamma HN).
  replace (- (expectation N gamma (fun i => ln (distance i) ^ 2) - mean_log N gamma ^ 2))
    with (\sum_(i < N) (ln (distance i) * (power_law N gamma i * (mean_log N gamma - ln (distance i))))).
  - apply (derive_sum N (fun i g => power_law N g i * ln (distance i))); intros i _.
    apply (is_derive_ext (fun g => ln (distance i) * power_law N g i)); [intros; apply Rmult_comm|].
    apply is_derive_scal, derive_power_law, HN.
  - rewrite (sum_ext N _ (fun i => mean_log N gamma * (power_law N gamma i * ln (distance i))
                                   - power_law N gamma i * ln (distance i) ^ 2)) by (intros; ring).
    rewrite sum_minus, sum_scale_l.
    change (\sum_(i < N) (power_law N gamma i * ln (distance i))) with (mean_log N gamma).
    unfold expectation; ring.
Qed.

(** The heat capacity is gamma^2 Var(ln d). *)
Theorem heat_capacity_is_variance N gamma :
  (0 < N)%nat -> heat_capacity N gamma = gamma ^ 2 * variance_log N gamma.
Proof.
  intros HN; unfold heat_capacity.
  rewrite (is_derive_unique _ _ _ (mean_log_falls N gamma HN)); ring.
Qed.

(** The Fisher information about gamma is C_V / gamma^2. *)
Theorem fisher_information_is_heat_capacity N gamma :
  (0 < N)%nat -> gamma <> 0 ->
  fisher_information N gamma = heat_capacity N gamma / gamma ^ 2.
Proof.
  intros HN nonzero; rewrite fisher_information_is_variance, heat_capacity_is_variance by exact HN.
  field; exact nonzero.
Qed.
