(** The variance of the uniform law on [0, L], and of the logarithm under a density that falls like 1 / d.

    Proved: the uniform law on [0, L] has mean L / 2, so squared mean L^2 / 4, and variance L^2 / 12. With
    the density 1 / (d ln N) on [1, N], the logarithm of d has the same: mean (ln N) / 2 and variance
    (ln N)^2 / 12. A source gives (ln N)^2 / 4 for the variance: that is the squared mean.

    Assumed: L > 0 and N > 1 are real; integrals are Riemann's.

    Not said: that distances in a model have this density. For whole distances 1 .. N the variance is another
    number, larger by terms of the order of ln N. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** The expectation of f under the uniform law on [0, L]. *)
Definition uniform_mean (L : R) (f : R -> R) : R := RInt (fun x => f x / L) 0 L.

(** The expectation of f under the density 1 / (d ln N) on [1, N]. *)
Definition reciprocal_mean (N : R) (f : R -> R) : R := RInt (fun d => f d / (d * ln N)) 1 N.

Lemma integral_by_antiderivative F f a b :
  a <= b ->
  (forall x, a <= x <= b -> is_derive F x (f x)) ->
  (forall x, a <= x <= b -> continuous f x) ->
  RInt f a b = F b - F a.
Proof.
  intros Hab derives smooth; apply is_RInt_unique.
  apply (is_RInt_derive F f); rewrite Rmin_left, Rmax_right by exact Hab; assumption.
Qed.

(** The uniform law on [0, L] has mass 1 and mean L / 2. *)
Theorem uniform_law_mean L :
  0 < L -> uniform_mean L (fun _ => 1) = 1 /\ uniform_mean L (fun x => x) = L / 2.
Proof.
  intros HL; unfold uniform_mean; split.
  - rewrite (integral_by_antiderivative (fun x => x / L)); [field; lra | lra | |].
    + intros x _; auto_derive; [exact I | field; lra].
    + intros x _; apply ex_derive_continuous; auto_derive; exact I.
  - rewrite (integral_by_antiderivative (fun x => x ^ 2 / (2 * L))); [field; lra | lra | |].
    + intros x _; auto_derive; [exact I | field; lra].
    + intros x _; apply ex_derive_continuous; auto_derive; exact I.
Qed.

(** The variance of the uniform law on [0, L] is L^2 / 12, and its squared mean is L^2 / 4. *)
Theorem uniform_law_variance L :
  0 < L ->
  let mean := uniform_mean L (fun x => x) in
  uniform_mean L (fun x => (x - mean) ^ 2) = L ^ 2 / 12 /\ mean ^ 2 = L ^ 2 / 4.
Proof.
  intros HL mean; assert (middle : mean = L / 2) by apply uniform_law_mean, HL.
  rewrite middle; split; [|field].
  unfold uniform_mean.
  rewrite (integral_by_antiderivative (fun x => (x - L / 2) ^ 3 / (3 * L))); [field; lra | lra | |].
  - intros x _; auto_derive; [exact I | field; lra].
  - intros x _; apply ex_derive_continuous; auto_derive; exact I.
Qed.

(** Under the density 1 / (d ln N) on [1, N] the variance of ln d is (ln N)^2 / 12, and its squared mean
    is (ln N)^2 / 4. *)
Theorem reciprocal_law_variance N :
  1 < N ->
  let mean := reciprocal_mean N ln in
  reciprocal_mean N (fun d => (ln d - mean) ^ 2) = ln N ^ 2 / 12 /\ mean ^ 2 = ln N ^ 2 / 4.
Proof.
  intros HN mean.
  assert (0 < ln N) by (rewrite <- ln_1; apply ln_increasing; lra).
  assert (middle : mean = ln N / 2).
  { unfold mean, reciprocal_mean.
    rewrite (integral_by_antiderivative (fun d => ln d ^ 2 / (2 * ln N))); [rewrite ln_1; field; lra | lra | |].
    - intros d Hd; auto_derive; [lra | field; lra].
    - intros d Hd; apply ex_derive_continuous; auto_derive; repeat split; try lra; nra. }
  rewrite middle; split; [|field].
  unfold reciprocal_mean.
  rewrite (integral_by_antiderivative (fun d => (ln d - ln N / 2) ^ 3 / (3 * ln N)));
    [rewrite ln_1; field; lra | lra | |].
  - intros d Hd; auto_derive; [lra | field; lra].
  - intros d Hd; apply ex_derive_continuous; auto_derive; repeat split; try lra; nra.
Qed.
