(** The closed form gamma_Pade = (2 theta - T sqrt 2) / (2 theta + T sqrt 2).

    Proved: it is (1 - x) / (1 + x) with x = T / (sqrt 2 theta); for positive theta and T it lies strictly
    between -1 and 1, falls as T grows, and is 0 exactly at T = sqrt 2 theta; its inverse; and it is
    the [1/1] Pade approximant of e^(-2x): of all (a + b x) / (1 + c x), the one whose value and first two
    derivatives at 0 are those of e^(-2x). The third derivatives differ.

    Assumed: theta and T are positive reals.

    Not said: that the attention of a trained model decays with this exponent, or that theta (the base of
    RoPE) and T (a length) determine it. This is algebra. That the exponent of a model is never above 1
    does not follow. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** The closed form, for the base theta and the length T. *)
Definition gamma_pade (theta T : R) : R :=
  (2 * theta - T * sqrt 2) / (2 * theta + T * sqrt 2).

(** The Cayley map (1 - x) / (1 + x). *)
Definition cayley (x : R) : R := (1 - x) / (1 + x).

Lemma root : 0 < sqrt 2 /\ sqrt 2 * sqrt 2 = 2.
Proof. split; [apply sqrt_lt_R0 | apply sqrt_sqrt]; lra. Qed.

(** gamma_Pade is (1 - x) / (1 + x) with x = T / (sqrt 2 theta). *)
Theorem gamma_pade_is_cayley theta T :
  0 < theta -> 0 < T -> gamma_pade theta T = cayley (T / (sqrt 2 * theta)).
Proof.
  intros Htheta HT; destruct root as [positive two]; unfold gamma_pade, cayley.
  replace (2 * theta) with (sqrt 2 * sqrt 2 * theta) by (rewrite two; reflexivity).
  field; repeat split; nra.
Qed.

Lemma ratio_positive theta T : 0 < theta -> 0 < T -> 0 < T / (sqrt 2 * theta).
Proof. intros; destruct root; apply Rdiv_lt_0_compat; nra. Qed.

Lemma cayley_alt x : 0 < x -> cayley x = 2 / (1 + x) - 1.
Proof. intros; unfold cayley; field; lra. Qed.

(** For positive theta and T it lies strictly between -1 and 1. *)
Theorem gamma_pade_range theta T : 0 < theta -> 0 < T -> -1 < gamma_pade theta T < 1.
Proof.
  intros Htheta HT; rewrite gamma_pade_is_cayley by assumption.
  pose proof (ratio_positive theta T Htheta HT) as Hx; set (x := T / _) in *.
  rewrite cayley_alt by exact Hx.
  assert (0 < 2 / (1 + x)) by (apply Rdiv_lt_0_compat; lra).
  assert (2 / (1 + x) < 2); [|lra].
  apply (Rmult_lt_reg_r (1 + x)); [lra|].
  unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra.
Qed.

(** It falls as T grows. *)
Theorem gamma_pade_falls theta T1 T2 :
  0 < theta -> 0 < T1 -> T1 < T2 -> gamma_pade theta T2 < gamma_pade theta T1.
Proof.
  intros Htheta H1 H12; destruct root as [positive _].
  rewrite !gamma_pade_is_cayley, !cayley_alt by (try apply ratio_positive; lra).
  pose proof (ratio_positive theta T1 Htheta H1).
  assert (T1 / (sqrt 2 * theta) < T2 / (sqrt 2 * theta)).
  { apply Rmult_lt_compat_r; [apply Rinv_0_lt_compat; nra | exact H12]. }
  apply Rplus_lt_compat_r, Rmult_lt_compat_l; [lra|].
  apply Rinv_lt_contravar; nra.
Qed.

(** It is 0 exactly at T = sqrt 2 theta. *)
Theorem gamma_pade_zero theta T :
  0 < theta -> 0 < T -> (gamma_pade theta T = 0 <-> T = sqrt 2 * theta).
Proof.
  intros Htheta HT; destruct root as [positive two]; unfold gamma_pade.
  assert (0 < 2 * theta + T * sqrt 2) by nra.
  split; intros E.
  - assert (2 * theta - T * sqrt 2 = 0) as top.
    { apply (Rmult_eq_reg_r (/ (2 * theta + T * sqrt 2))); [|apply Rinv_neq_0_compat; lra].
      rewrite Rmult_0_l; exact E. }
    apply (Rmult_eq_reg_r (sqrt 2)); [|lra].
    replace (sqrt 2 * theta * sqrt 2) with (sqrt 2 * sqrt 2 * theta) by ring; rewrite two; lra.
  - rewrite E; replace (sqrt 2 * theta * sqrt 2) with (sqrt 2 * sqrt 2 * theta) by ring.
    rewrite two; field; lra.
Qed.

(** Its inverse: the length at which it has the value g is T = sqrt 2 theta (1 - g) / (1 + g). *)
Theorem gamma_pade_inverse theta T g :
  0 < theta -> 0 < T -> -1 < g < 1 ->
  (gamma_pade theta T = g <-> T = sqrt 2 * theta * ((1 - g) / (1 + g))).
Proof.
  intros Htheta HT [Hg _]; destruct root as [positive two]; unfold gamma_pade.
  assert (0 < 2 * theta + T * sqrt 2) by nra.
  split; intros E.
  - rewrite <- E.
    replace (1 + (2 * theta - T * sqrt 2) / (2 * theta + T * sqrt 2))
      with (4 * theta / (2 * theta + T * sqrt 2)) by (field; lra).
    replace (1 - (2 * theta - T * sqrt 2) / (2 * theta + T * sqrt 2))
      with (2 * (T * sqrt 2) / (2 * theta + T * sqrt 2)) by (field; lra).
    transitivity (T * (sqrt 2 * sqrt 2) / 2); [rewrite two; field|].
    field; split; lra.
  - rewrite E.
    replace (sqrt 2 * theta * ((1 - g) / (1 + g)) * sqrt 2)
      with (sqrt 2 * sqrt 2 * (theta * ((1 - g) / (1 + g)))) by ring.
    rewrite two; field; split; lra.
Qed.

(* ---------------------------------------------------------------- the Pade approximant *)

(** A quotient of two polynomials of degree 1, with 1 for the constant below. *)
Definition linear_fraction (a b c x : R) : R := (a + b * x) / (1 + c * x).

Lemma stays_off_zero c x : 1 + c * x <> 0 -> locally x (fun y => 1 + c * y <> 0).
Proof.
  intros Hx.
  assert (continuous (fun y => 1 + c * y) x) as continuous_there.
  { apply (ex_derive_continuous (fun y => 1 + c * y)); auto_derive; exact I. }
  apply (continuous_there (fun y => y <> 0)), open_neq, Hx.
Qed.

Lemma derive_fraction a b c x :
  1 + c * x <> 0 -> Derive (linear_fraction a b c) x = (b - a * c) / (1 + c * x) ^ 2.
Proof.
  intros Hx; apply is_derive_unique; unfold linear_fraction.
  auto_derive; [exact Hx | field; exact Hx].
Qed.

Lemma derive_fraction_2 a b c x :
  1 + c * x <> 0 -> Derive_n (linear_fraction a b c) 2 x = -2 * c * (b - a * c) / (1 + c * x) ^ 3.
Proof.
  intros Hx; simpl Derive_n; apply is_derive_unique.
  apply (is_derive_ext_loc (fun y => (b - a * c) / (1 + c * y) ^ 2)).
  - apply (filter_imp (fun y => 1 + c * y <> 0)); [|apply stays_off_zero, Hx].
    intros y Hy; symmetry; apply derive_fraction, Hy.
  - auto_derive; [exact (pow_nonzero _ 2 Hx) | field; exact Hx].
Qed.

Lemma derive_fraction_3 a b c x :
  1 + c * x <> 0 -> Derive_n (linear_fraction a b c) 3 x = 6 * c ^ 2 * (b - a * c) / (1 + c * x) ^ 4.
Proof.
  intros Hx; change (Derive (Derive_n (linear_fraction a b c) 2) x = 6 * c ^ 2 * (b - a * c) / (1 + c * x) ^ 4).
  apply is_derive_unique.
  apply (is_derive_ext_loc (fun y => -2 * c * (b - a * c) / (1 + c * y) ^ 3)).
  - apply (filter_imp (fun y => 1 + c * y <> 0)); [|apply stays_off_zero, Hx].
    intros y Hy; symmetry; apply derive_fraction_2, Hy.
  - auto_derive; [exact (pow_nonzero _ 3 Hx) | field; exact Hx].
Qed.

Lemma fraction_at_zero a b c :
  let at_zero k := Derive_n (linear_fraction a b c) k 0 in
  at_zero 0%nat = a /\ at_zero 1%nat = b - a * c
  /\ at_zero 2%nat = -2 * c * (b - a * c) /\ at_zero 3%nat = 6 * c ^ 2 * (b - a * c).
Proof.
  assert (there : 1 + c * 0 <> 0) by lra.
  intros at_zero; unfold at_zero; repeat split.
  - simpl; unfold linear_fraction; field.
  - simpl Derive_n; rewrite derive_fraction by exact there; field.
  - rewrite derive_fraction_2 by exact there; field.
  - rewrite derive_fraction_3 by exact there; field.
Qed.

Lemma derive_decay k x : Derive_n (fun y => exp (-2 * y)) k x = (-2) ^ k * exp (-2 * x).
Proof.
  revert x; induction k as [|k IH]; intros x; simpl; [ring|].
  rewrite (Derive_ext _ _ x IH).
  apply is_derive_unique; auto_derive; [exact I | ring].
Qed.

Lemma decay_at_zero k : Derive_n (fun x => exp (-2 * x)) k 0 = (-2) ^ k.
Proof. rewrite derive_decay, Rmult_0_r, exp_0; ring. Qed.

Lemma cayley_is_a_fraction x : cayley x = linear_fraction 1 (-1) 1 x.
Proof. unfold cayley, linear_fraction; f_equal; ring. Qed.

(** At 0 the value and the first three derivatives of (1 - x) / (1 + x) are 1, -2, 4, -12, those of
    e^(-2x) are 1, -2, 4, -8: the first three agree, the last does not. *)
Theorem cayley_and_decay_at_zero :
  let cayley_at_zero k := Derive_n cayley k 0 in
  let decay_at_zero k := Derive_n (fun x => exp (-2 * x)) k 0 in
  cayley_at_zero 0%nat = 1 /\ decay_at_zero 0%nat = 1
  /\ cayley_at_zero 1%nat = -2 /\ decay_at_zero 1%nat = -2
  /\ cayley_at_zero 2%nat = 4 /\ decay_at_zero 2%nat = 4
  /\ cayley_at_zero 3%nat = -12 /\ decay_at_zero 3%nat = -8.
Proof.
  destruct (fraction_at_zero 1 (-1) 1) as (E0 & E1 & E2 & E3).
  cbv beta zeta; rewrite !decay_at_zero, !(Derive_n_ext _ _ _ 0 cayley_is_a_fraction), E0, E1, E2, E3.
  repeat split; ring.
Qed.

(** (1 - x) / (1 + x) is the [1/1] Pade approximant of e^(-2x): (a + b x) / (1 + c x) has the value and the first two
    derivatives of e^(-2x) at 0 exactly if a = 1, b = -1 and c = 1. *)
Theorem cayley_is_the_pade_approximant a b c :
  (forall k, (k <= 2)%nat -> Derive_n (linear_fraction a b c) k 0 = Derive_n (fun x => exp (-2 * x)) k 0)
  <-> a = 1 /\ b = -1 /\ c = 1.
Proof.
  destruct (fraction_at_zero a b c) as (E0 & E1 & E2 & _).
  split.
  - intros agree.
    pose proof (agree 0%nat ltac:(lia)) as A0; pose proof (agree 1%nat ltac:(lia)) as A1;
      pose proof (agree 2%nat ltac:(lia)) as A2.
    rewrite decay_at_zero in A0, A1, A2; rewrite E0 in A0; rewrite E1 in A1; rewrite E2 in A2.
    simpl in A0, A1, A2; subst a.
    assert (c = 1) by nra; subst c; repeat split; lra.
  - intros (-> & -> & ->) k Hk; rewrite decay_at_zero.
    destruct k as [|[|[|k]]]; [rewrite E0 | rewrite E1 | rewrite E2 | lia]; simpl; ring.
Qed.
