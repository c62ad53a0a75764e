"""kill -9 under load: nothing acknowledged is lost, nothing appears that nobody wrote, no batch is half there."""
