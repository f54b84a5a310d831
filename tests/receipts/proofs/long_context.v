(** A changed base of rotary positions.

    Proved: with the base multiplied by s^(d/(d-2)) pair i turns s^(2i/(d-2)) times slower, so the fastest pair turns as before
    and the slowest, of number d/2 - 1, exactly s times slower; with the base multiplied by s alone the slowest pair turns only
    s^((d-2)/d) times slower.

    Assumed: base, factor and width are positive reals, the width above 2.

    Not said: that a model reads further with these frequencies; how a program rounds. *)

From Coq Require Import Reals Lra.
Open Scope R_scope.

(** The frequency of pair i: theta^(-2i/d). *)
Definition frequency (theta d i : R) : R := Rpower theta (- (2 * i / d)).

(** The base of NTK-aware scaling. *)
Definition ntk_base (theta s d : R) : R := theta * Rpower s (d / (d - 2)).

Lemma exp_quotient a b : exp a / exp b = exp (a - b).
Proof. unfold Rdiv, Rminus; rewrite <- exp_Ropp, <- exp_plus; reflexivity. Qed.

(** With the new base every pair turns slower by its own power of the factor. *)
Theorem ntk_slows_each_pair theta s d i : 0 < theta -> 0 < s -> 2 < d ->
  frequency (ntk_base theta s d) d i = frequency theta d i / Rpower s (2 * i / (d - 2)).
Proof.
  intros theta_positive s_positive wide; unfold frequency, ntk_base, Rpower.
  rewrite ln_mult; [ | exact theta_positive | apply exp_pos].
  rewrite ln_exp, exp_quotient; f_equal; field; lra.
Qed.

(** The fastest pair turns as before, and the slowest exactly s times slower. *)
Theorem ntk_ends theta s d : 0 < theta -> 0 < s -> 2 < d ->
  frequency (ntk_base theta s d) d 0 = frequency theta d 0
  /\ frequency (ntk_base theta s d) d (d / 2 - 1) = frequency theta d (d / 2 - 1) / s.
Proof.
  intros theta_positive s_positive wide; split; rewrite ntk_slows_each_pair by assumption.
  - replace (2 * 0 / (d - 2)) with 0 by (field; lra); rewrite Rpower_O by assumption; field.
  - replace (2 * (d / 2 - 1) / (d - 2)) with 1 by (field; lra); rewrite Rpower_1 by assumption; reflexivity.
Qed.

(** With the base multiplied by s the slowest pair turns slower by less than s: by s^((d-2)/d). *)
Theorem base_times_factor theta s d : 0 < theta -> 0 < s -> 2 < d ->
  frequency (theta * s) d (d / 2 - 1) = frequency theta d (d / 2 - 1) / Rpower s ((d - 2) / d).
Proof.
  intros theta_positive s_positive wide; unfold frequency, Rpower.
  rewrite ln_mult by assumption; rewrite exp_quotient; f_equal; field; lra.
Qed.
