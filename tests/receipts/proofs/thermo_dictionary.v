(** A dictionary between softmax weights and statistical mechanics, on finite sums.

    Proved: a variance is a sum over pairs; with weights p_i = e^(-beta E_i) / Z the free energy -ln Z / beta is
    the mean energy less entropy over beta, and any other distribution has more by its divergence over beta; if
    scores are multiplied by b, the mean of any f changes at the rate of its covariance with the scores; the
    variance of a mean of distributions is the mean of their variances plus the variance of their means; and the
    slope of the mean of any f in gamma, squared, is at most Var(f) times the Fisher information.

    Assumed: there are n >= 1 states, energies and scores are real. beta is positive where one divides by it.

    Not said: that attention has an energy, that anything in a model comes to equilibrium or is conserved, or that the
    scores of a trained head depend on the distance alone. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums gibbs softmax power_law_fisher.
Open Scope R_scope.

(** The mean of f under p. *)
Definition mean (n : nat) (p f : nat -> R) : R := \sum_(i < n) (p i * f i).

(** The covariance of f and g under p. *)
Definition covariance (n : nat) (p f g : nat -> R) : R :=
  \sum_(i < n) (p i * ((f i - mean n p f) * (g i - mean n p g))).

(** The variance of f under p. *)
Definition variance (n : nat) (p f : nat -> R) : R := \sum_(i < n) (p i * (f i - mean n p f) ^ 2).

(** The sum over all pairs i < j of states. *)
Definition over_pairs (n : nat) (g : nat -> nat -> R) : R := \sum_(j < n) (\sum_(i < j) g i j).

Lemma covariance_by_products n p f g :
  \sum_(i < n) p i = 1 -> covariance n p f g = \sum_(i < n) (p i * (f i * g i)) - mean n p f * mean n p g.
Proof.
  intros one; change (sum n p = 1) in one; unfold covariance.
  set (a := mean n p f); set (b := mean n p g).
  rewrite (sum_ext n _ (fun i => p i * (f i * g i) - a * (p i * g i) - b * (p i * f i) + a * b * p i)) by (intros; ring).
  rewrite sum_plus, !sum_minus, !sum_scale_l.
  fold (mean n p f); fold (mean n p g); fold a; fold b.
  replace (sum n (fun i => p i)) with (sum n p) by reflexivity; rewrite one; ring.
Qed.

Lemma variance_is_covariance n p f : variance n p f = covariance n p f f.
Proof. unfold variance, covariance; apply sum_ext; intros; ring. Qed.

Lemma pairs_twice n g :
  (forall i j, g i j = g j i) -> (forall i, g i i = 0) ->
  \sum_(j < n) (\sum_(i < n) g i j) = 2 * over_pairs n g.
Proof.
  intros symmetric zero; unfold over_pairs; induction n as [|n IH]; [simpl; ring|].
  simpl; rewrite sum_plus, IH, (zero n).
  rewrite (sum_ext n (g n) (fun i => g i n)) by (intros; apply symmetric).
  ring.
Qed.

(** A variance is the sum over all pairs of p_i p_j (E_i - E_j)^2: no mean is needed, and a constant added to all
    energies drops out. *)
Theorem variance_by_pairs n p E :
  \sum_(i < n) p i = 1 -> variance n p E = over_pairs n (fun i j => p i * p j * (E i - E j) ^ 2).
Proof.
  intros one; pose proof one as one'; change (sum n p = 1) in one'.
  assert (twice : 2 * variance n p E = 2 * over_pairs n (fun i j => p i * p j * (E i - E j) ^ 2)); [|lra].
  rewrite <- pairs_twice by (intros; ring).
  rewrite variance_is_covariance, covariance_by_products by exact one.
  set (m := mean n p E); set (s := \sum_(i < n) (p i * (E i * E i))).
  rewrite (sum_ext n _ (fun j => s * p j - 2 * m * (p j * E j) + p j * (E j * E j))).
  - rewrite sum_plus, sum_minus, !sum_scale_l; fold (mean n p E); fold m; fold s.
    replace (sum n (fun j => p j)) with (sum n p) by reflexivity; rewrite one'; ring.
  - intros j _.
    rewrite (sum_ext n _ (fun i => p j * (p i * (E i * E i)) - 2 * (p j * E j) * (p i * E i) + p j * (E j * E j) * p i))
      by (intros; ring).
    rewrite sum_plus, sum_minus, !sum_scale_l; fold s; fold (mean n p E); fold m.
    replace (sum n (fun i => p i)) with (sum n p) by reflexivity; rewrite one'; ring.
Qed.

(** The Boltzmann weights of energies E at the inverse temperature beta. *)
Definition boltzmann (n : nat) (E : nat -> R) (beta : R) : nat -> R := softmax n (fun i => - beta * E i).

(** The free energy: - ln Z / beta. *)
Definition free_energy (n : nat) (E : nat -> R) (beta : R) : R := - ln (\sum_(i < n) exp (- beta * E i)) / beta.

Lemma log_boltzmann n E beta i :
  (i < n)%nat -> beta <> 0 -> ln (boltzmann n E beta i) = beta * (free_energy n E beta - E i).
Proof.
  intros Hi nonzero; unfold boltzmann; rewrite log_softmax by exact Hi.
  unfold log_sum_exp, free_energy; field; exact nonzero.
Qed.

(** Mean energy less entropy over beta, of any distribution, is the free energy plus the divergence from the
    Boltzmann weights over beta. *)
Theorem free_energy_of_a_distribution n E beta q :
  (0 < n)%nat -> beta <> 0 -> distribution n q ->
  mean n q E - entropy n q / beta = free_energy n E beta + kl n q (boltzmann n E beta) / beta.
Proof.
  intros Hn nonzero [Hq one]; change (sum n q = 1) in one.
  assert (divergence : kl n q (boltzmann n E beta)
    = \sum_(i < n) (q i * ln (q i)) - beta * free_energy n E beta + beta * mean n q E).
  { unfold kl, mean.
    rewrite (sum_ext n _ (fun i => q i * ln (q i) - beta * free_energy n E beta * q i + beta * (q i * E i))).
    - rewrite sum_plus, sum_minus, !sum_scale_l.
      replace (sum n (fun i => q i)) with (sum n q) by reflexivity; rewrite one; ring.
    - intros i Hi; destruct (Hq i Hi) as [positive | <-]; [|ring].
      rewrite ln_div by (assumption || apply softmax_positive, Hi).
      rewrite log_boltzmann by assumption; ring. }
  rewrite divergence; unfold entropy; field; exact nonzero.
Qed.

(** The free energy is mean energy less entropy over beta: F = U - H / beta. *)
Theorem free_energy_identity n E beta :
  (0 < n)%nat -> beta <> 0 ->
  free_energy n E beta = mean n (boltzmann n E beta) E - entropy n (boltzmann n E beta) / beta.
Proof.
  intros Hn nonzero; set (p := boltzmann n E beta).
  assert (Hp : distribution n p).
  { split; [intros i Hi; apply Rlt_le, softmax_positive, Hi | apply softmax_sums_to_one, Hn]. }
  assert (self : kl n p p = 0).
  { unfold kl; apply sum_zero; intros i Hi.
    assert (0 < p i) by apply softmax_positive, Hi.
    replace (p i / p i) with 1 by (field; lra); rewrite ln_1; ring. }
  rewrite free_energy_of_a_distribution by assumption; fold p; rewrite self; field; exact nonzero.
Qed.

(** At a positive beta no distribution has less mean energy less entropy over beta than the Boltzmann weights. *)
Theorem free_energy_is_least n E beta q :
  (0 < n)%nat -> 0 < beta -> distribution n q ->
  free_energy n E beta <= mean n q E - entropy n q / beta.
Proof.
  intros Hn positive Hq.
  rewrite free_energy_of_a_distribution by (assumption || lra).
  assert (Hp : distribution n (boltzmann n E beta)).
  { split; [intros i Hi; apply Rlt_le, softmax_positive, Hi | apply softmax_sums_to_one, Hn]. }
  destruct (gibbs_inequality n q (boltzmann n E beta) Hq Hp ltac:(intros i Hi; apply softmax_positive, Hi)) as [nonneg _].
  assert (0 <= kl n q (boltzmann n E beta) / beta); [|lra].
  apply Rmult_le_pos; [exact nonneg | apply Rlt_le, Rinv_0_lt_compat, positive].
Qed.

(** The softmax of scores times b. *)
Definition sharpened (n : nat) (s : nat -> R) (b : R) : nat -> R := softmax n (fun i => b * s i).

(** If the scores are multiplied by b, the mean of any f changes at the rate of its covariance with the scores. *)
Theorem response_is_covariance n s f b :
  (0 < n)%nat -> is_derive (fun t => mean n (sharpened n s t) f) b (covariance n (sharpened n s b) f s).
Proof.
  intros Hn.
  set (total := fun t => \sum_(k < n) exp (t * s k)).
  set (first := fun t => \sum_(k < n) (f k * exp (t * s k))).
  assert (positive : forall t, 0 < total t) by (intros t; apply (exps_positive n (fun k => t * s k) Hn)).
  assert (as_ratio : forall g t, mean n (sharpened n s t) g = (\sum_(k < n) (g k * exp (t * s k))) / total t).
  { intros g t; unfold mean, sharpened, softmax; rewrite <- sum_divide; apply sum_ext; intros i _.
    fold (total t); field; pose proof (positive t); lra. }
  apply (is_derive_ext (fun t => first t / total t)); [intros t; symmetry; apply as_ratio|].
  pose proof (positive b) as here.
  rewrite covariance_by_products by (apply softmax_sums_to_one, Hn).
  fold (mean n (sharpened n s b) (fun i => f i * s i)).
  rewrite !as_ratio; fold (first b).
  evar_last.
  - apply is_derive_div; [| |lra].
    + apply (derive_sum n (fun i t => f i * exp (t * s i)) (fun i => f i * s i * exp (b * s i))); intros i _.
      auto_derive; [exact I | ring].
    + apply (derive_sum n (fun i t => exp (t * s i)) (fun i => s i * exp (b * s i))); intros i _.
      auto_derive; [exact I | ring].
  - in_reals; cbv beta; fold (first b); fold (total b); field; lra.
Qed.

(** The mean of m distributions with shares w. *)
Definition blend (m : nat) (w : nat -> R) (p : nat -> nat -> R) (i : nat) : R := \sum_(k < m) (w k * p k i).

Lemma mean_of_a_blend m n w p f : mean n (blend m w p) f = \sum_(k < m) (w k * mean n (p k) f).
Proof.
  unfold mean, blend.
  rewrite (sum_ext n _ (fun i => \sum_(k < m) (w k * (p k i * f i)))).
  - rewrite sum_swap; apply sum_ext; intros k _; rewrite sum_scale_l; reflexivity.
  - intros i _; rewrite <- sum_scale_r; apply sum_ext; intros k _; ring.
Qed.

(** The variance of a blend of distributions is the mean of their variances plus the variance of their means. *)
Theorem variance_of_a_blend m n w p f :
  \sum_(k < m) w k = 1 -> (forall k, (k < m)%nat -> \sum_(i < n) p k i = 1) ->
  variance n (blend m w p) f
  = \sum_(k < m) (w k * variance n (p k) f) + variance m w (fun k => mean n (p k) f).
Proof.
  intros one each; pose proof one as one'; change (sum m w = 1) in one'.
  assert (total : \sum_(i < n) blend m w p i = 1).
  { unfold blend; rewrite sum_swap; rewrite <- one; apply sum_ext; intros k Hk.
    rewrite sum_scale_l. pose proof (each k Hk) as here; change (sum n (p k) = 1) in here.
    replace (sum n (fun i => p k i)) with (sum n (p k)) by reflexivity; rewrite here; ring. }
  rewrite !variance_is_covariance, covariance_by_products by exact total.
  rewrite covariance_by_products by exact one.
  rewrite (sum_ext m (fun k => w k * variance n (p k) f)
             (fun k => w k * (mean n (p k) (fun i => f i * f i)) - w k * (mean n (p k) f * mean n (p k) f))).
  - change (\sum_(i < n) (blend m w p i * (f i * f i))) with (mean n (blend m w p) (fun i => f i * f i)).
    rewrite !mean_of_a_blend, sum_minus.
    change (mean m w (fun k => mean n (p k) f)) with (\sum_(k < m) (w k * mean n (p k) f)); ring.
  - intros k Hk; rewrite variance_is_covariance, covariance_by_products by (apply each, Hk).
    fold (mean n (p k) (fun i => f i * f i)); ring.
Qed.

Lemma covariance_squared n p f g :
  (forall i, (i < n)%nat -> 0 <= p i) -> \sum_(i < n) p i = 1 ->
  covariance n p f g ^ 2 <= variance n p f * variance n p g.
Proof.
  intros unsigned one.
  set (v := variance n p g); set (c := covariance n p f g).
  assert (v_nonneg : 0 <= v) by (apply sum_nonneg; intros i Hi; apply Rmult_le_pos; [apply unsigned, Hi | apply pow2_ge_0]).
  assert (square : 0 <= v * (v * variance n p f - c ^ 2)).
  { replace (v * (v * variance n p f - c ^ 2))
      with (\sum_(i < n) (p i * (v * (f i - mean n p f) - c * (g i - mean n p g)) ^ 2)).
    - apply sum_nonneg; intros i Hi; apply Rmult_le_pos; [apply unsigned, Hi | apply pow2_ge_0].
    - rewrite (sum_ext n _ (fun i => v ^ 2 * (p i * (f i - mean n p f) ^ 2)
                 - 2 * v * c * (p i * ((f i - mean n p f) * (g i - mean n p g)))
                 + c ^ 2 * (p i * (g i - mean n p g) ^ 2))) by (intros; ring).
      rewrite sum_plus, sum_minus, !sum_scale_l.
      fold (variance n p f); fold (variance n p g); fold (covariance n p f g); fold v; fold c; ring. }
  destruct v_nonneg as [positive | none].
  - assert (0 <= v * variance n p f - c ^ 2); [|lra].
    apply (Rmult_le_reg_l v); [exact positive | lra].
  - assert (each : forall i, (i < n)%nat -> p i * (g i - mean n p g) ^ 2 = 0).
    { apply (sum_nonneg_zero n (fun i => p i * (g i - mean n p g) ^ 2)).
      - intros i Hi; apply Rmult_le_pos; [apply unsigned, Hi | apply pow2_ge_0].
      - symmetry; exact none. }
    assert (c = 0) as ->.
    { unfold c, covariance; apply sum_zero; intros i Hi; specialize (each i Hi).
      apply Rmult_integral in each as [-> | gap]; [ring|].
      assert (g i - mean n p g = 0) as -> by nra; ring. }
    rewrite <- none; lra.
Qed.

Lemma derive_mean_of_power_law N gamma f :
  (0 < N)%nat ->
  is_derive (fun g => mean N (power_law N g) f) gamma
    (- covariance N (power_law N gamma) f (fun i => ln (distance i))).
Proof.
  intros HN; destruct (power_law_is_a_distribution N gamma HN) as [_ one].
  rewrite covariance_by_products by exact one.
  evar_last.
  - apply (derive_sum N (fun i g => power_law N g i * f i)
             (fun i => f i * (power_law N gamma i * (mean_log N gamma - ln (distance i))))); intros i _.
    apply (is_derive_ext (fun g => f i * power_law N g i)); [intros; apply Rmult_comm|].
    apply is_derive_scal, derive_power_law, HN.
  - in_reals.
    rewrite (sum_ext N _ (fun i => mean_log N gamma * (power_law N gamma i * f i)
               - power_law N gamma i * (f i * ln (distance i)))) by (intros; ring).
    rewrite sum_minus, sum_scale_l; fold (mean N (power_law N gamma) f).
    unfold mean_log, expectation; fold (mean N (power_law N gamma) (fun i => ln (distance i))); ring.
Qed.

(** Cramer and Rao, for one draw: the slope of the mean of any f in gamma, squared, is at most the variance of f
    times the Fisher information; so an estimate without bias, of slope 1, has at least the variance 1 / I. *)
Theorem cramer_rao N gamma f :
  (0 < N)%nat ->
  Derive (fun g => mean N (power_law N g) f) gamma ^ 2
  <= variance N (power_law N gamma) f * fisher_information N gamma.
Proof.
  intros HN; destruct (power_law_is_a_distribution N gamma HN) as [positive one].
  assert (slope : Derive (fun g => mean N (power_law N g) f) gamma
                  = - covariance N (power_law N gamma) f (fun i => ln (distance i)))
    by apply is_derive_unique, derive_mean_of_power_law, HN.
  rewrite slope, fisher_information_is_variance by exact HN.
  change (variance_log N gamma) with (variance N (power_law N gamma) (fun i => ln (distance i))).
  replace ((- covariance N (power_law N gamma) f (fun i => ln (distance i))) ^ 2)
    with (covariance N (power_law N gamma) f (fun i => ln (distance i)) ^ 2) by ring.
  apply covariance_squared; [intros; apply Rlt_le, positive | exact one].
Qed.
