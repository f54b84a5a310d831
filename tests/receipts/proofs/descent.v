(** Gradient descent on the parabola f(x) = x^2.

    Proved: x_k = (1 - 2 eta)^k x_0; from 3 with the learning rate 0.1 it is 3 (4/5)^k, so x_10 = 0.3221 and
    f(x_10) = 0.1038 to four digits; and the iterates reach the minimum in the limit exactly for
    0 < eta < 1.

    Assumed: x_0 and the learning rate eta are real; the slope f' is the derivative, not a difference quotient.

    Not said: anything about another function. On a loss that is not a parabola the largest step that
    works depends on the place, and a minimum need not be reached. *)

From Coq Require Import Reals Lra Lia.
From Coquelicot Require Import Coquelicot.
Open Scope R_scope.

(** The iterates of gradient descent from x0: each is the one before less eta times the slope there. *)
Fixpoint descent (f : R -> R) (eta x0 : R) (k : nat) : R :=
  match k with
  | O => x0
  | S m => descent f eta x0 m - eta * Derive f (descent f eta x0 m)
  end.

(** The parabola. *)
Definition square (x : R) : R := x ^ 2.

Lemma derive_square x : Derive square x = 2 * x.
Proof. apply is_derive_unique; unfold square; auto_derive; [exact I | ring]. Qed.

(** On the parabola x_k = (1 - 2 eta)^k x_0. *)
Theorem descent_on_the_parabola eta x0 k :
  descent square eta x0 k = (1 - 2 * eta) ^ k * x0.
Proof.
  induction k as [|k IH]; simpl; [ring|].
  rewrite derive_square, IH; ring.
Qed.

(** From 3 with the learning rate 0.1 the iterates are x_k = 3 (4/5)^k. *)
Theorem worked_descent k : descent square (1 / 10) 3 k = 3 * (4 / 5) ^ k.
Proof.
  rewrite descent_on_the_parabola, Rmult_comm.
  replace (1 - 2 * (1 / 10)) with (4 / 5) by field; reflexivity.
Qed.

(** After ten steps the worked descent is at 0.3221 and the parabola at 0.1038, to four digits. *)
Theorem worked_descent_after_ten_steps :
  let x10 := descent square (1 / 10) 3 10 in
  Rabs (x10 - 0.3221) < 0.00005 /\ Rabs (square x10 - 0.1038) < 0.00005.
Proof.
  intros x10; unfold x10, square; rewrite worked_descent.
  split; apply Rabs_def1; lra.
Qed.

(** From any start but the minimum itself, the iterates tend to the minimum 0 exactly if 0 < eta < 1. *)
Theorem descent_converges_exactly_below_one eta x0 :
  x0 <> 0 -> (is_lim_seq (descent square eta x0) 0 <-> 0 < eta < 1).
Proof.
  intros away; set (q := 1 - 2 * eta).
  assert (limit : is_lim_seq (descent square eta x0) 0 <-> is_lim_seq (fun k => q ^ k * x0) 0).
  { split; apply is_lim_seq_ext; intros k; [|symmetry]; apply descent_on_the_parabola. }
  rewrite limit; split.
  - intros tends.
    destruct (Rlt_le_dec (Rabs q) 1) as [small | large].
    + apply Rabs_def2 in small; unfold q in small; lra.
    + exfalso.
      apply is_lim_seq_abs in tends; simpl in tends; rewrite Rabs_R0 in tends.
      assert (Rbar_le (Rabs x0) 0) as below.
      { apply (is_lim_seq_le (fun _ => Rabs x0) (fun k => Rabs (q ^ k * x0))); [|apply is_lim_seq_const | exact tends].
        intros k; rewrite Rabs_mult, <- RPow_abs.
        pose proof (pow_R1_Rle (Rabs q) k large); pose proof (Rabs_pos x0); nra. }
      simpl in below; pose proof (Rabs_pos_lt x0 away); lra.
  - intros between.
    replace 0 with (0 * x0) by ring.
    apply (is_lim_seq_scal_r (fun k => q ^ k) x0 0).
    apply is_lim_seq_geom, Rabs_def1; unfold q; lra.
Qed.
