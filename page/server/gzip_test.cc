#include "page/server/gzip.h"

#include <gtest/gtest.h>

namespace siding::page {
namespace {

TEST(GzipTest, ItIsSentToThoseWhoTakeIt) {
  for (const char* takes :
       {"gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8, *;q=0.1", "deflate,GZIP", "*", "x-gzip"})
    EXPECT_TRUE(TakesGzip(takes)) << takes;
  for (const char* does_not :
       {"", "identity", "br", "gzip;q=0", "gzip; q=0.000", "*;q=0", "gzip;q=0, *", "gzipped"})
    EXPECT_FALSE(TakesGzip(does_not)) << does_not;
}

}  // namespace
}  // namespace siding::page
