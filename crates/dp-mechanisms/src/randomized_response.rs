//! Randomised response: a member of a finite set, told truthfully with a known probability.
