(** Adding by turning, and weights that only shrink.

    Proved: a sum of cosines with amplitudes that are not negative is largest at the right answer; it does not see whole turns, so
    sums count modulo p; each cosine is made of products of cosines and sines of the single numbers; weights that shrink by the same
    factor in each step are the first ones times its power.

    Assumed: amplitudes, frequencies and numbers are reals, and p is not zero. Nothing is said of how much larger the right answer
    is than the second: with one frequency and a large p it is hardly larger.

    Not said: that a trained network computes this, or by which way; that its weights only shrink. Gradients move them too. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums.
Open Scope R_scope.

(** The votes of n frequencies w with amplitudes A for the answer c, when the sum is s. *)
Definition votes (n : nat) (A w : nat -> R) (s c : R) : R :=
  \sum_(k < n) (A k * cos (w k * (s - c))).

(** If no amplitude is negative, no answer gets more votes than the sum itself. *)
Theorem right_answer_gets_most_votes n A w s c :
  (forall k, (k < n)%nat -> 0 <= A k) -> votes n A w s c <= votes n A w s s.
Proof.
  intros positive; unfold votes; apply sum_le; intros k Hk.
  replace (w k * (s - s)) with 0 by ring; rewrite cos_0.
  pose proof (COS_bound (w k * (s - c))) as [_ above].
  apply Rmult_le_compat_l; [apply positive, Hk | exact above].
Qed.

(** Adding p, a whole number of turns for a frequency of k turns in p, changes no cosine of a sum. *)
Theorem whole_turns_are_not_seen (p s : R) (k : nat) :
  p <> 0 -> cos (2 * PI * INR k / p * (s + p)) = cos (2 * PI * INR k / p * s).
Proof.
  intros nonzero.
  replace (2 * PI * INR k / p * (s + p)) with (2 * PI * INR k / p * s + 2 * INR k * PI) by (field; exact nonzero).
  apply cos_period.
Qed.

(** A vote for c is made of products of the cosines and sines of a, b and c alone. *)
Theorem vote_is_made_of_products w a b c :
  cos (w * (a + b - c)) =
  (cos (w * a) * cos (w * b) - sin (w * a) * sin (w * b)) * cos (w * c)
  + (sin (w * a) * cos (w * b) + cos (w * a) * sin (w * b)) * sin (w * c).
Proof.
  replace (w * (a + b - c)) with (w * a + w * b - w * c) by ring.
  rewrite cos_minus, cos_plus, sin_plus; ring.
Qed.

(** The weight after t steps that only shrink it, each by the factor 1 - rate * decay. *)
Fixpoint shrunk (rate decay w : R) (t : nat) : R :=
  match t with
  | O => w
  | S before => (1 - rate * decay) * shrunk rate decay w before
  end.

(** Decay alone multiplies a weight by the t-th power of 1 - rate * decay. *)
Theorem shrunk_is_a_power rate decay w t : shrunk rate decay w t = (1 - rate * decay) ^ t * w.
Proof. induction t as [|t IH]; simpl; [ring | rewrite IH; ring]. Qed.
