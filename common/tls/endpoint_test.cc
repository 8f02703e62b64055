#include "common/tls/endpoint.h"

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(Endpoint, HostAndPortAreOnTheNetwork) {
  for (const std::string text : {"head1:7433", "10.0.0.1:7433", "[fd00::1]:7433", "head1.site.org:1"}) {
    EXPECT_TRUE(ParseEndpoint(text).remote) << text;
    EXPECT_EQ(ParseEndpoint(text).target, text);
  }
}
TEST(Endpoint, AllElseIsASocketsPath) {
  for (const std::string text :
       {"/run/siding/siding.sock", "/run/a:1", "siding.sock", "head1:", ":7433", "a:b", "head1:70000"}) {
    EXPECT_FALSE(ParseEndpoint(text).remote) << text;
  }
}
TEST(Endpoint, ASocketsPathBecomesAbsolute) { EXPECT_EQ(ParseEndpoint("/a/s").target, "unix:/a/s"); }
TEST(Endpoint, AnEmptyOneLeadsNowhere) { EXPECT_EQ(ParseEndpoint("").target, "unix:"); }

}  // namespace
}  // namespace siding
