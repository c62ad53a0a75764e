"""What every suite here needs: a server as a child process, signed requests by hand, both SDK clients as one."""
