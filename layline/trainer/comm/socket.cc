#include "layline/trainer/comm/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "layline/base/error.h"
#include "layline/base/file_descriptor.h"

namespace layline::trainer::comm {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

using Socket = base::FileDescriptor;

std::string error_text(int error) { return std::generic_category().message(error); }

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Null and why, if the name is unknown.
std::pair<Addresses, std::string> resolve(const std::string& host, int port, int type) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = type;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {Addresses(error == 0 ? found : nullptr, &freeaddrinfo), error == 0 ? "" : gai_strerror(error)};
}

// "" or why not.
std::string connect_once(const addrinfo& address, milliseconds timeout) {
  const Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return error_text(errno);
  if (connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return "";
  if (errno != EINPROGRESS) return error_text(errno);
  pollfd waiting{socket.get(), POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(std::max<int64_t>(1, timeout.count()))) == 0) return "no answer";
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error == 0 ? "" : error_text(error);
}

std::string connect_to_any(const std::string& host, int port, milliseconds timeout) {
  const auto [addresses, problem] = resolve(host, port, SOCK_STREAM);
  if (!addresses) return problem;
  std::string reason;
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    reason = connect_once(*address, timeout);
    if (reason.empty()) break;
  }
  return reason;
}

}  // namespace

bool is_loopback(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

int listen_on(int port, bool is_loopback_only) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string where = fmt::format("port {}", port);
  if (socket.get() < 0) throw base::RunError(where, error_text(errno));
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(is_loopback_only ? INADDR_LOOPBACK : INADDR_ANY);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    const char* hint = errno == EADDRINUSE ? ": another run or program listens there; choose another port" : "";
    throw base::InputError(where, fmt::format("rank 0 cannot serve there ({}){}", error_text(errno), hint));
  }
  return socket.release();
}

int port_of(int socket) {
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

std::string try_to_reach(const std::string& host, int port, milliseconds timeout) {
  const auto end = steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    std::string reason = connect_to_any(host, port, std::clamp(left, milliseconds(1), milliseconds(5000)));
    if (reason.empty() || steady_clock::now() + milliseconds(100) >= end) return reason;
    std::this_thread::sleep_for(milliseconds(100));
  }
}

std::string address_toward(const std::string& host) {
  const auto [addresses, problem] = resolve(host, 9, SOCK_DGRAM);
  for (const addrinfo* address = addresses.get(); address; address = address->ai_next) {
    const Socket socket(::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t length = sizeof(own);
    if (socket.get() < 0 || connect(socket.get(), address->ai_addr, address->ai_addrlen) != 0 ||
        getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) != 0) {
      continue;
    }
    char text[NI_MAXHOST];
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&own), length, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) ==
        0) {
      return text;
    }
  }
  return "";
}

}  // namespace layline::trainer::comm
