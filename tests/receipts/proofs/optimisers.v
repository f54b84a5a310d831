(** Momentum, Adam's first step, and how far a constant rate gets with noisy gradients.

    Proved, for any sequence of gradients and any number of steps: momentum as a moving average with rate eta takes
    the steps of the heavy ball with rate (1 - b) eta. For a constant gradient both have their closed form. Adam's first
    step is eta |g| / (|g| + eps). The mean square of a parameter under noisy descent on a parabola nears its floor
    by the factor (1 - eta a)^2 in each step.

    Assumed: entries are real, both momenta start at 0; for the floor, that the mean square obeys the recurrence which
    independent noise of mean 0 and variance s^2 gives it.

    Not said: that any of this makes a network's loss smaller; what rounding does. *)

From Coq Require Import Reals Lra.
Open Scope R_scope.

(** A fading mixture of gradients: it keeps the share b of what it has and takes c times the new gradient. *)
Fixpoint mixture (b c : R) (g : nat -> R) (t : nat) : R :=
  match t with O => 0 | S k => b * mixture b c g k + c * g k end.

(** Momentum as a moving average. *)
Definition ema (b : R) : (nat -> R) -> nat -> R := mixture b (1 - b).

(** Momentum as the heavy ball's fading sum. *)
Definition heavy (b : R) : (nat -> R) -> nat -> R := mixture b 1.

(** The parameter after t steps with rate eta along m, from w. *)
Fixpoint walk (eta w : R) (m : nat -> R) (t : nat) : R :=
  match t with O => w | S k => walk eta w m k - eta * m (S k) end.

Lemma ema_is_a_share_of_heavy b g t : ema b g t = (1 - b) * heavy b g t.
Proof.
  unfold ema, heavy; induction t as [|t IH]; simpl; [ring|].
  rewrite IH; ring.
Qed.

(** A moving average with rate eta and the heavy ball with rate (1 - b) eta are at the same place after every step. *)
Theorem two_forms_of_momentum b eta w g t :
  walk eta w (ema b g) t = walk ((1 - b) * eta) w (heavy b g) t.
Proof.
  induction t as [|t IH]; cbn [walk]; [reflexivity|].
  rewrite IH, ema_is_a_share_of_heavy; ring.
Qed.

(** Under a constant gradient the moving average is (1 - b^t) g, and the heavy ball's sum that divided by 1 - b. *)
Theorem momentum_under_a_constant_gradient b g t :
  b <> 1 ->
  ema b (fun _ => g) t = (1 - b ^ t) * g /\ heavy b (fun _ => g) t = (1 - b ^ t) / (1 - b) * g.
Proof.
  intros Hb; assert (1 - b <> 0) by lra.
  assert (closed : heavy b (fun _ => g) t = (1 - b ^ t) / (1 - b) * g).
  { unfold heavy; induction t as [|t IH]; simpl; [field; assumption|].
    rewrite IH; field; assumption. }
  split; [|exact closed].
  rewrite ema_is_a_share_of_heavy, closed; field; assumption.
Qed.

(** Adam's first step, from averages that start at 0, with bias correction. *)
Definition adam_first_step (eta b1 b2 eps g : R) : R :=
  eta * ((1 - b1) * g / (1 - b1)) / (sqrt ((1 - b2) * Rsqr g / (1 - b2)) + eps).

(** Its size is eta |g| / (|g| + eps), whatever the two b are. *)
Theorem adams_first_step_is_the_rate eta b1 b2 eps g :
  b1 < 1 -> b2 < 1 -> 0 < eps -> 0 <= eta ->
  Rabs (adam_first_step eta b1 b2 eps g) = eta * (Rabs g / (Rabs g + eps)).
Proof.
  intros H1 H2 He Heta; unfold adam_first_step.
  replace ((1 - b1) * g / (1 - b1)) with g by (field; lra).
  replace ((1 - b2) * Rsqr g / (1 - b2)) with (Rsqr g) by (field; lra).
  rewrite sqrt_Rsqr_abs.
  assert (0 < Rabs g + eps) by (pose proof (Rabs_pos g); lra).
  unfold Rdiv; rewrite !Rabs_mult, Rabs_inv, (Rabs_right eta), (Rabs_right (Rabs g + eps)) by lra.
  ring.
Qed.

(** The mean square after t steps of w - eta (a w + noise), whose noise has mean 0 and variance s^2, from v. *)
Fixpoint mean_square (eta a s v : R) (t : nat) : R :=
  match t with O => v | S k => (1 - eta * a) ^ 2 * mean_square eta a s v k + eta ^ 2 * s ^ 2 end.

(** The floor. *)
Definition floor_of (eta a s : R) : R := eta * s ^ 2 / (a * (2 - eta * a)).

(** It nears the floor by the factor (1 - eta a)^2 in each step, from above or below. *)
Theorem noise_floor eta a s v t :
  0 < a -> eta * a < 2 ->
  mean_square eta a s v t - floor_of eta a s = ((1 - eta * a) ^ 2) ^ t * (v - floor_of eta a s).
Proof.
  intros Ha Hs.
  assert (fixed : (1 - eta * a) ^ 2 * floor_of eta a s + eta ^ 2 * s ^ 2 = floor_of eta a s)
    by (unfold floor_of; field; split; lra).
  induction t as [|t IH]; cbn [mean_square pow]; [ring|].
  rewrite <- fixed at 1.
  replace ((1 - eta * a) * ((1 - eta * a) * 1)) with ((1 - eta * a) ^ 2) by ring.
  replace (mean_square eta a s v t) with (floor_of eta a s + (mean_square eta a s v t - floor_of eta a s)) by ring.
  rewrite IH; ring.
Qed.
