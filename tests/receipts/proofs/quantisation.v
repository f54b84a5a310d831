(** Affine quantisation: a real x is stored as a whole number q = clip(round(x / scale) + zero) and
    read as scale (q - zero).

    Proved: for every x between the ends scale (lo - zero) and scale (hi - zero) of the range, the
    error is at most scale / 2, for every way to round to a nearest whole number; half a step is
    attained; and q never leaves lo .. hi.

    Assumed: the scale is a positive real and x is real; lo, hi and the zero point are whole numbers.

    Not said: anything about values outside the range, which are clipped to its ends, about what a
    model's accuracy loses, or about the rounding of x / scale in a program. *)

From Coq Require Import Reals ZArith Lra Lia.
From Coquelicot Require Import Rcomplements.
Open Scope R_scope.

(** A function that rounds to a nearest whole number; ties may go either way. *)
Definition rounds_to_nearest (round : R -> Z) : Prop := forall y, Rabs (IZR (round y) - y) <= 1 / 2.

(** The stored whole number, kept between lo and hi. *)
Definition quantise (round : R -> Z) (scale : R) (zero lo hi : Z) (x : R) : Z :=
  Z.max lo (Z.min hi (round (x / scale) + zero)).

(** The real number that a stored one stands for. *)
Definition dequantise (scale : R) (zero q : Z) : R := scale * IZR (q - zero).

(** There is such a function: half-way values go up here. *)
Theorem rounding_to_nearest_exists : rounds_to_nearest (fun y => Int_part (y + 1 / 2)).
Proof. intros y; destruct (base_Int_part (y + 1 / 2)); apply Rabs_le; lra. Qed.

(** The stored number is between lo and hi. *)
Theorem quantised_is_in_range round scale zero lo hi x :
  (lo <= hi)%Z -> (lo <= quantise round scale zero lo hi x <= hi)%Z.
Proof. unfold quantise; lia. Qed.

(** A value inside the range is read back with an error of at most scale / 2. *)
Theorem quantisation_error round scale zero lo hi x :
  rounds_to_nearest round -> 0 < scale ->
  scale * IZR (lo - zero) <= x <= scale * IZR (hi - zero) ->
  Rabs (x - dequantise scale zero (quantise round scale zero lo hi x)) <= scale / 2.
Proof.
  intros nearest HS [above below].
  pose proof (nearest (x / scale)) as near; apply Rabs_le_between in near.
  assert (scaled : x = scale * (x / scale)) by (field; lra).
  set (y := x / scale) in *.
  assert (IZR (lo - zero) <= y) by (apply (Rmult_le_reg_l scale); lra).
  assert (y <= IZR (hi - zero)) by (apply (Rmult_le_reg_l scale); lra).
  assert (lo - zero <= round y)%Z.
  { assert (lo - zero < round y + 1)%Z; [apply lt_IZR; rewrite plus_IZR; lra | lia]. }
  assert (round y <= hi - zero)%Z.
  { assert (round y < hi - zero + 1)%Z; [apply lt_IZR; rewrite plus_IZR; lra | lia]. }
  unfold dequantise, quantise; fold y.
  replace (Z.max lo (Z.min hi (round y + zero)) - zero)%Z with (round y) by lia.
  rewrite scaled, <- Rmult_minus_distr_l, Rabs_mult, (Rabs_pos_eq scale) by lra.
  assert (Rabs (y - IZR (round y)) <= 1 / 2) by (apply Rabs_le; lra).
  replace (scale / 2) with (scale * (1 / 2)) by field.
  apply Rmult_le_compat_l; lra.
Qed.

(** Half a step is attained: with Z = 0, the value scale / 2 is read back with an error of scale / 2. *)
Theorem quantisation_error_is_attained round scale lo hi :
  rounds_to_nearest round -> 0 < scale -> (lo <= 0 /\ 1 <= hi)%Z ->
  Rabs (scale / 2 - dequantise scale 0 (quantise round scale 0 lo hi (scale / 2))) = scale / 2.
Proof.
  intros nearest HS [Hlo Hhi]; unfold dequantise, quantise.
  replace (scale / 2 / scale) with (1 / 2) by (field; lra).
  pose proof (nearest (1 / 2)) as near; apply Rabs_le_between in near.
  set (k := round (1 / 2)) in *.
  assert (k = 0 \/ k = 1)%Z as [-> | ->].
  { assert (-1 < k)%Z by (apply lt_IZR; lra).
    assert (k < 2)%Z by (apply lt_IZR; lra). lia. }
  - replace (Z.max lo (Z.min hi (0 + 0)) - 0)%Z with 0%Z by lia.
    rewrite Rmult_0_r, Rminus_0_r; apply Rabs_pos_eq; lra.
  - replace (Z.max lo (Z.min hi (1 + 0)) - 0)%Z with 1%Z by lia.
    rewrite Rmult_1_r, Rabs_left; lra.
Qed.
