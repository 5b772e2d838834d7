// The little that a rendezvous needs of sockets.
#pragma once

#include <chrono>
#include <string>

namespace layline::trainer::comm {

// Whether the host names this machine's loopback: localhost, 127.x.y.z or ::1.
bool is_loopback(const std::string& host);

// A listening TCP socket on that port (0: any free one), on the loopback only or on all addresses. Throws
// base::InputError if the port is in use.
int listen_on(int port, bool is_loopback_only);

// The port that a listening socket has.
int port_of(int socket);

// Tries to connect until it works, and closes the connection again. Returns "" or why the last try failed.
std::string try_to_reach(const std::string& host, int port, std::chrono::milliseconds timeout);

// This machine's address on the way to host, as a number; "" if there is no way. Sends nothing.
std::string address_toward(const std::string& host);

}  // namespace layline::trainer::comm
