"""What every program of the package needs of its process: arguments, log lines, libraries."""
