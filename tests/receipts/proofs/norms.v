(** Layer norm and RMS norm of a vector.

    Proved: layer norm is the RMS norm of the centred vector, so of a vector whose mean is 0 the two are equal
    (gain and epsilon alike, no offset); layer norm ignores a number added to all entries; and without gain,
    offset and epsilon its output has mean 0 and mean square 1 where the entries are not all equal.

    Assumed: entries are real and there are n >= 1 of them; the variance divides by n.

    Not said: that activations of a trained model are centred, or that either norm trains better. *)

From Coq Require Import Reals Lra Lia.
From Proofs Require Import sums.
Open Scope R_scope.

(** The mean of n entries. *)
Definition mean (n : nat) (x : nat -> R) : R := sum n x / INR n.

(** The vector less its mean. *)
Definition centred (n : nat) (x : nat -> R) (i : nat) : R := x i - mean n x.

(** RMS norm with the gain g: each entry over the root of the mean square plus epsilon. *)
Definition rms_norm (n : nat) (eps : R) (g x : nat -> R) (i : nat) : R :=
  g i * x i / sqrt (mean n (fun j => x j ^ 2) + eps).

(** Layer norm with the gain g and the offset b: entries less their mean over the root of the variance plus epsilon. *)
Definition layer_norm (n : nat) (eps : R) (g b x : nat -> R) (i : nat) : R :=
  g i * (x i - mean n x) / sqrt (mean n (fun j => (x j - mean n x) ^ 2) + eps) + b i.

Lemma mean_centred n x : (0 < n)%nat -> mean n (centred n x) = 0.
Proof.
  intros Hn; unfold centred; set (mu := mean n x); unfold mean.
  rewrite sum_minus, sum_const; unfold mu, mean.
  change (\sum_(i < n) x i) with (sum n x).
  pose proof (lt_0_INR n Hn); field; lra.
Qed.

(** Layer norm is the RMS norm of the centred vector, plus the offset. *)
Theorem layer_norm_is_rms_norm_of_the_centred n eps g b x i :
  layer_norm n eps g b x i = rms_norm n eps g (centred n x) i + b i.
Proof. reflexivity. Qed.

(** Of a vector whose mean is 0, layer norm without offset and RMS norm are equal. *)
Theorem layer_norm_of_a_centred_vector n eps g x i :
  mean n x = 0 -> layer_norm n eps g (fun _ => 0) x i = rms_norm n eps g x i.
Proof.
  intros zero; unfold layer_norm, rms_norm; rewrite zero, Rplus_0_r, Rminus_0_r.
  replace (mean n (fun j => (x j - 0) ^ 2)) with (mean n (fun j => x j ^ 2)); [reflexivity|].
  unfold mean; f_equal; apply sum_ext; intros; rewrite Rminus_0_r; reflexivity.
Qed.

(** Adding the same number to all entries does not change their layer norm. *)
Theorem layer_norm_is_shift_invariant n eps g b x c i :
  (0 < n)%nat -> layer_norm n eps g b (fun j => x j + c) i = layer_norm n eps g b x i.
Proof.
  intros Hn; unfold layer_norm.
  assert (moved : mean n (fun j => x j + c) = mean n x + c).
  { unfold mean; rewrite sum_plus, sum_const; change (\sum_(i < n) x i) with (sum n x).
    pose proof (lt_0_INR n Hn); field; lra. }
  rewrite moved.
  replace (mean n (fun j => (x j + c - (mean n x + c)) ^ 2)) with (mean n (fun j => (x j - mean n x) ^ 2)).
  - replace (x i + c - (mean n x + c)) with (x i - mean n x) by ring; reflexivity.
  - unfold mean at 1 3; f_equal; apply sum_ext; intros; ring.
Qed.

(** Without gain, offset and epsilon, layer norm has mean 0 and mean square 1 where the variance is not 0. *)
Theorem layer_norm_standardises n x :
  let y := layer_norm n 0 (fun _ => 1) (fun _ => 0) x in
  (0 < n)%nat -> 0 < mean n (fun j => (x j - mean n x) ^ 2) ->
  mean n y = 0 /\ mean n (fun j => y j ^ 2) = 1.
Proof.
  intros y Hn varies; pose proof (lt_0_INR n Hn) as size.
  set (var := mean n (fun j => (x j - mean n x) ^ 2)) in *.
  assert (entry : forall j, y j = centred n x j / sqrt var).
  { intros j; unfold y, layer_norm, centred; fold var; rewrite !Rplus_0_r; unfold Rdiv; ring. }
  pose proof (sqrt_lt_R0 var varies) as root.
  split; unfold mean at 1.
  - rewrite (sum_ext n y (fun j => centred n x j / sqrt var)) by (intros; apply entry).
    rewrite sum_divide.
    pose proof (mean_centred n x Hn) as zero; unfold mean in zero.
    change (\sum_(i < n) centred n x i) with (sum n (centred n x)).
    replace (sum n (centred n x)) with 0; [field; lra|].
    apply (Rmult_eq_reg_r (/ INR n)); [|apply Rinv_neq_0_compat; lra].
    unfold Rdiv in zero; rewrite zero; ring.
  - rewrite (sum_ext n _ (fun j => (x j - mean n x) ^ 2 / var)).
    + rewrite sum_divide.
      replace (\sum_(i < n) (x i - mean n x) ^ 2) with (INR n * var); [field; lra|].
      unfold var, mean at 1; field; lra.
    + intros j _; rewrite entry; unfold centred.
      assert (whole : var = sqrt var * sqrt var) by (symmetry; apply sqrt_sqrt; lra).
      rewrite whole at 2; field; lra.
Qed.
