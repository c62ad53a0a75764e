"""`azure-cosmos` 4.0, the Python client of 2020."""

import cosmos4_walk

# 4.0 starts again at the first page whatever continuation it is given.
cosmos4_walk.main(can_resume=False)
