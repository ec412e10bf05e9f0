"""What the solver is measured against: other ways to the same optimum, each at its cheapest setting."""
