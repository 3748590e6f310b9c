"""Private cost-sensitive learners: what each decision costs goes in, a rule comes out (Jagielski et
al.; Alabi)."""
