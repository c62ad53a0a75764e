module perihelion/generation

go 1.25.0

require github.com/btnguyen2k/gocosmos v1.1.0

require (
	github.com/btnguyen2k/consu/checksum v1.1.0 // indirect
	github.com/btnguyen2k/consu/g18 v0.1.0 // indirect
	github.com/btnguyen2k/consu/gjrc v0.2.1 // indirect
	github.com/btnguyen2k/consu/olaf v0.1.3 // indirect
	github.com/btnguyen2k/consu/reddo v0.1.8 // indirect
	github.com/btnguyen2k/consu/semita v0.1.5 // indirect
)
