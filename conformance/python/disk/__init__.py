"""A full disk: writes are refused in words, reads and deletes go on, and writing resumes when there is room again."""
