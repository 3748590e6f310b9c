"""The game between a learner and an auditor of constraints (Jagielski et al.): plan, play,
bounds."""
