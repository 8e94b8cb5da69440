import ipaddress

network = ipaddress.ip_network("10.0.4.0/22")
hosts = ["10.0.5.9", "10.0.8.1", "10.0.7.255"]
print(network.num_addresses, network.broadcast_address)
[h for h in hosts if ipaddress.ip_address(h) in network]

#: prints
#| 1024 10.0.7.255
#: value
#| ["10.0.5.9", "10.0.7.255"]
