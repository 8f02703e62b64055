#include "controller/platform/kubernetes/objects/quantity.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding::kubernetes {
namespace {

using testing::HasSubstr;

struct Case {
  const char* text;
  int64_t units;
  int64_t thousandths;
};

TEST(ParseQuantity, UnitsAndThousandthsAreRoundedUp) {
  const int64_t gi = int64_t{1} << 30;
  for (const Case& c : {
           Case{"0", 0, 0},
           Case{"2", 2, 2000},
           Case{"+2", 2, 2000},
           Case{"0.5", 1, 500},
           Case{".5", 1, 500},
           Case{"1.", 1, 1000},
           Case{"100m", 1, 100},
           Case{"1500m", 2, 1500},
           Case{"1u", 1, 1},
           Case{"1n", 1, 1},
           Case{"2k", 2000, 2'000'000},
           Case{"2e3", 2000, 2'000'000},
           Case{"2E-1", 1, 200},
           Case{"1Ki", 1024, 1'024'000},
           Case{"1.5Gi", gi + gi / 2, 1000 * (gi + gi / 2)},
           Case{"0.1Ki", 103, 102'400},
           Case{"128974848", 128974848, 128974848000},
           Case{"0.000000000000000001Ei", 2, 1153},
       }) {
    EXPECT_EQ(*ParseQuantity(c.text), c.units) << c.text;
    EXPECT_EQ(*ParseQuantityInThousandths(c.text), c.thousandths) << c.text;
  }
}

TEST(ParseQuantity, WhatIsTooMuchIsTheMost) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const char* text : {"8Ei", "999999999999999999Ei", "1e30", "9.99999999999999999Ei"}) {
    EXPECT_EQ(*ParseQuantity(text), most) << text;
  }
  EXPECT_EQ(*ParseQuantityInThousandths("9223372036854775807"), most);
}

TEST(ParseQuantity, WhatIsNoneIsRefusedByItsText) {
  for (const char* text : {"", ".", "-1", "m", "1 Gi", "1gi", "1e", "1e 3", "1e99", "1.2.3", "0x10",
                           "123456789012345678901", "\xff"}) {
    EXPECT_FALSE(ParseQuantity(text).ok()) << text;
  }
  EXPECT_THAT(ParseQuantity("1gi").status().message(), HasSubstr("\"1gi\" is no quantity"));
}

}  // namespace
}  // namespace siding::kubernetes
