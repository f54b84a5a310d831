(** What a head loses when keys are thrown out of its cache.

    Proved: the output of the keys that stay, times their mass, differs from the whole output by the weighted values of those
    that go, coordinate by coordinate; the difference is at most the sum of their weights times the sizes of their values; and for
    every share below one there is a head that keeps this share of its mass and none of its output.

    Assumed: weights and values are reals, and a key stays or goes as a whole.

    Not said: how large these quantities are in a trained model, or what later layers make of the difference. *)

From Coq Require Import Reals Lra Lia Bool.
From Coquelicot Require Import Coquelicot.
From Proofs Require Import sums.
Open Scope R_scope.

(** 1 for a key that stays, 0 for one that goes. *)
Definition counts (b : bool) : R := if b then 1 else 0.

(** The mass of the keys that stay. *)
Definition mass (n : nat) (stays : nat -> bool) (w : nat -> R) : R := \sum_(j < n) (counts (stays j) * w j).

(** One coordinate of the output of all n keys. *)
Definition whole (n : nat) (w v : nat -> R) : R := \sum_(j < n) (w j * v j).

(** The same of the keys that stay, their weights divided by their mass. *)
Definition part (n : nat) (stays : nat -> bool) (w v : nat -> R) : R :=
  (\sum_(j < n) (counts (stays j) * (w j * v j))) / mass n stays w.

(** What goes: the weighted values of the other keys. *)
Definition gone (n : nat) (stays : nat -> bool) (w v : nat -> R) : R :=
  \sum_(j < n) (counts (negb (stays j)) * (w j * v j)).

(** The whole output is the mass of the keys that stay times their output, and what goes. *)
Theorem what_goes_is_missing n stays w v : mass n stays w <> 0 ->
  whole n w v = mass n stays w * part n stays w v + gone n stays w v.
Proof.
  intros some.
  assert (staying : mass n stays w * part n stays w v = \sum_(j < n) (counts (stays j) * (w j * v j))).
  { unfold part; field; exact some. }
  rewrite staying; unfold gone, whole.
  rewrite <- sum_plus; apply sum_ext; intros j _.
  destruct (stays j); unfold counts; simpl; ring.
Qed.

Lemma sum_size n f : Rabs (sum n f) <= \sum_(j < n) Rabs (f j).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|]; lra.
Qed.

(** It is at most the sum, over the keys that go, of the weight times the size of the value: a small weight with a large
    value counts as much as a large weight with a small one. *)
Theorem what_goes_is_bounded n stays w v : (forall j, (j < n)%nat -> 0 <= w j) ->
  Rabs (gone n stays w v) <= \sum_(j < n) (counts (negb (stays j)) * (w j * Rabs (v j))).
Proof.
  intros positive; eapply Rle_trans; [apply sum_size|].
  apply Req_le; apply sum_ext; intros j Hj.
  rewrite !Rabs_mult, (Rabs_pos_eq (w j)) by (apply positive; exact Hj).
  destruct (stays j); unfold counts; simpl; [rewrite Rabs_R0 | rewrite Rabs_R1]; ring.
Qed.

(** For every share f below one there are two keys of positive weights that sum to one, of which the first, kept alone, has the
    mass f, and gives 0 where the whole output is not 0: the change is as large as the output, whatever f is. *)
Theorem mass_without_the_answer f : 0 < f < 1 ->
  exists w v : nat -> R, exists stays : nat -> bool,
    0 < w 0%nat /\ 0 < w 1%nat /\ \sum_(j < 2) (w j) = 1 /\ mass 2 stays w = f /\
    whole 2 w v <> 0 /\ Rabs (part 2 stays w v - whole 2 w v) = Rabs (whole 2 w v).
Proof.
  intros inside.
  exists (fun j => match j with O => f | _ => 1 - f end), (fun j => match j with O => 0 | _ => 1 end),
    (fun j => match j with O => true | _ => false end).
  unfold mass, whole, part, mass; simpl; unfold counts.
  repeat split; try lra.
  replace ((0 + 1 * (f * 0) + 0 * ((1 - f) * 1)) / (0 + 1 * f + 0 * (1 - f)) - (0 + f * 0 + (1 - f) * 1))
    with (- (0 + f * 0 + (1 - f) * 1)) by (field; lra).
  apply Rabs_Ropp.
Qed.
