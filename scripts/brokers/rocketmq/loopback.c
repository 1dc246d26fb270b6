// A library to be preloaded: what binds to every address binds to loopback. RocketMQ has no setting for two of its ports.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int bind(int fd, const struct sockaddr *address, socklen_t length) {
  int (*real)(int, const struct sockaddr *, socklen_t) = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "bind");
  if (address->sa_family == AF_INET && length >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in to;
    memcpy(&to, address, sizeof to);
    if (to.sin_addr.s_addr == htonl(INADDR_ANY)) {
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      return real(fd, (struct sockaddr *)&to, sizeof to);
    }
  }
  if (address->sa_family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 to;
    memcpy(&to, address, sizeof to);
    if (IN6_IS_ADDR_UNSPECIFIED(&to.sin6_addr)) {
      // A socket of IPv6 that was bound to everything takes IPv4 as well, and its clients come by that.
      inet_pton(AF_INET6, "::ffff:127.0.0.1", &to.sin6_addr);
      return real(fd, (struct sockaddr *)&to, sizeof to);
    }
  }
  return real(fd, address, length);
}
