//! Mechanisms of the user's own: one claim, and every accountant, the certificate and the auditor know what to do.
