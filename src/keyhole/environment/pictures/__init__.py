"""Pictures of an environment: coding graphs and prevalence."""
