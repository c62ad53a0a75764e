"""`azure-cosmos` 4.7, the Python client of 2024."""

import cosmos4_walk

cosmos4_walk.main()
