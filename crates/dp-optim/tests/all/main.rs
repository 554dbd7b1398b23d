//! Tests of the public interface, in one program.

mod brute_force;
mod custom_loss;
mod errata;
mod golden;
mod golden_bst14;
mod golden_steps;
mod last_iterate;
mod neighbours;
mod objective_perturbation;
mod phased;
mod rsgd_ar;
mod scs13;
mod searched_descent;
mod softmax;
mod support;
