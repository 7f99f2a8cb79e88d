"""The world: state and rules as plain functions, the clock that ticks it, the service that serves it."""
