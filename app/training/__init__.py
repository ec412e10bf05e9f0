"""Training jobs as users see them: request, state, progress, cancel."""
