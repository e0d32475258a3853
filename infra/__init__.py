"""The Pulumi program. Registers resources, waits, exports; computes nothing about serving."""
