"""`azure-cosmos` 4.5, the Python client of 2023."""

import cosmos4_walk

cosmos4_walk.main()
