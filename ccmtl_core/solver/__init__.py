"""The solver: a sum of squares per task plus the fusion penalty on a graph, to a certified optimum."""
