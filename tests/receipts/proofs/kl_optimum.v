(** The optimum of a reward under a KL penalty, on a finite set.

    Proved: of all distributions pi, the one that maximises E_pi[r] - beta KL(pi, pi_ref) is
    pi_ref e^(r / beta) / Z, and no other does; its value is beta ln Z, and any other pi has less by beta
    times its divergence from the optimum.

    Assumed: the set has n elements, pi_ref is positive everywhere and sums to 1, beta > 0.
    pi may have zeros; there pi ln(pi / pi_ref) is 0.

    Not said: that training finds this optimum, that a network can represent it, or that the reward is
    what people want. The set of all texts is not finite unless their length is bounded. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Rcomplements.
From Proofs Require Import sums gibbs.
Open Scope R_scope.

(** The expected reward less beta times the divergence from the reference policy. *)
Definition objective (n : nat) (beta : R) (r ref p : nat -> R) : R :=
  \sum_(i < n) (p i * r i) - beta * kl n p ref.

(** The sum Z that makes the optimum sum to 1. *)
Definition normaliser (n : nat) (beta : R) (r ref : nat -> R) : R :=
  \sum_(i < n) (ref i * exp (r i / beta)).

(** The reference policy weighed by e^(r / beta). *)
Definition optimum (n : nat) (beta : R) (r ref : nat -> R) (i : nat) : R :=
  ref i * exp (r i / beta) / normaliser n beta r ref.

Lemma normaliser_positive n beta r ref :
  distribution n ref -> (forall i, (i < n)%nat -> 0 < ref i) -> 0 < normaliser n beta r ref.
Proof.
  intros [_ one] positive; apply sum_positive.
  - destruct n; [simpl in one; lra | lia].
  - intros i Hi; apply Rmult_lt_0_compat; [apply positive, Hi | apply exp_pos].
Qed.

(** pi_ref e^(r / beta) / Z is a distribution, positive everywhere. *)
Theorem optimum_is_a_distribution n beta r ref :
  distribution n ref -> (forall i, (i < n)%nat -> 0 < ref i) ->
  distribution n (optimum n beta r ref) /\ forall i, (i < n)%nat -> 0 < optimum n beta r ref i.
Proof.
  intros Href positive; pose proof (normaliser_positive n beta r ref Href positive) as Hz.
  assert (each : forall i, (i < n)%nat -> 0 < optimum n beta r ref i).
  { intros i Hi; apply Rdiv_lt_0_compat; [|exact Hz].
    apply Rmult_lt_0_compat; [apply positive, Hi | apply exp_pos]. }
  split; [split|]; [intros; apply Rlt_le, each; assumption | | exact each].
  unfold optimum; rewrite sum_divide; fold (normaliser n beta r ref); field; lra.
Qed.

(** The objective of any distribution p is beta ln Z less beta times its divergence from the optimum. *)
Theorem objective_is_distance_from_the_optimum n beta r ref p :
  0 < beta -> distribution n ref -> (forall i, (i < n)%nat -> 0 < ref i) -> distribution n p ->
  objective n beta r ref p = beta * ln (normaliser n beta r ref) - beta * kl n p (optimum n beta r ref).
Proof.
  intros Hbeta Href positive [Hp onep]; change (sum n p = 1) in onep.
  pose proof (normaliser_positive n beta r ref Href positive) as Hz.
  unfold objective, kl; set (z := normaliser n beta r ref) in *.
  replace (beta * ln z) with (\sum_(i < n) (p i * (beta * ln z))) by (rewrite sum_scale_r, onep; ring).
  rewrite <- !sum_scale_l, <- !sum_minus; apply sum_ext; intros i Hi.
  destruct (Hp i Hi) as [Hpi | <-]; [|ring].
  pose proof (positive i Hi); pose proof (exp_pos (r i / beta)).
  assert (0 < ref i * exp (r i / beta)) by (apply Rmult_lt_0_compat; assumption).
  unfold optimum; fold z.
  rewrite (ln_div (p i) (ref i)), (ln_div (p i)), (ln_div _ z), ln_mult, ln_exp
    by (try apply Rdiv_lt_0_compat; assumption).
  field; lra.
Qed.

(** pi_ref e^(r / beta) / Z maximises E_pi[r] - beta KL(pi, pi_ref), with the value beta ln Z, and no other
    distribution does. *)
Theorem kl_regularised_optimum n beta r ref p :
  0 < beta -> distribution n ref -> (forall i, (i < n)%nat -> 0 < ref i) -> distribution n p ->
  objective n beta r ref p <= objective n beta r ref (optimum n beta r ref)
  /\ objective n beta r ref (optimum n beta r ref) = beta * ln (normaliser n beta r ref)
  /\ (objective n beta r ref p = objective n beta r ref (optimum n beta r ref)
      -> forall i, (i < n)%nat -> p i = optimum n beta r ref i).
Proof.
  intros Hbeta Href positive Hp.
  destruct (optimum_is_a_distribution n beta r ref Href positive) as [Hopt each].
  rewrite !objective_is_distance_from_the_optimum by assumption.
  destruct (gibbs_inequality n p _ Hp Hopt each) as [nonneg only].
  destruct (gibbs_inequality n _ _ Hopt Hopt each) as [_ [_ self]].
  rewrite (self (fun _ _ => eq_refl)).
  split; [nra|split; [ring|]]; intros equal; apply only; nra.
Qed.
