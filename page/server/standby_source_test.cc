#include "page/server/standby_source.h"

#include "common/clock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "page/server/page.h"

namespace siding::page {
namespace {

using nlohmann::json;

class StandbyPageTest : public testing::Test {
 protected:
  StandbyPageTest() {
    source_.SetActive({"pid 9 on head1 (head1:7433)", "head1", "http://127.0.0.1:7480", false});
    page_.Turn(Duration(0)).IgnoreError();
  }
  HttpResponse Get(const std::string& path) {
    return page_.Answer({.method = "GET", .path = path, .headers = {{"Host", "localhost"}}});
  }

  FakeClock clock_;
  StandbySource source_;
  const std::vector<File> files_{{"/", "text/html", "<p>"}};
  Page page_{source_, clock_, files_};
};

TEST_F(StandbyPageTest, EveryQuestionIsAnsweredWithWhichOneIsActive) {
  const json active{{"name", "pid 9 on head1 (head1:7433)"},
                    {"host", "head1"},
                    {"page", "http://127.0.0.1:7480"},
                    {"is_here", false}};
  for (const char* path : {"/api/v1/site", "/api/v1/jobs", "/api/v1/jobs/7/plans", "/api/v1/events"}) {
    const HttpResponse response = Get(path);
    EXPECT_EQ(response.status, 503) << path;
    const json error = json::parse(*response.body)["error"];
    EXPECT_EQ(error["message"], "this controller stands by; the active one is pid 9 on head1 (head1:7433)");
    EXPECT_EQ(error["active"], active);
  }
}

TEST_F(StandbyPageTest, ThePagesFilesAreThere) { EXPECT_EQ(*Get("/").body, "<p>"); }

TEST_F(StandbyPageTest, AnotherOneThatBecomesActiveIsNamed) {
  EXPECT_EQ(Get("/api/v1/site").status, 503);
  source_.SetActive({"pid 12 on head3 (head3:7433)", "head3", "", false});
  page_.Turn(Duration(0)).IgnoreError();
  EXPECT_EQ(json::parse(*Get("/api/v1/site").body)["error"]["active"]["host"], "head3");
}

TEST(ActiveIn, IsNothingOfAnotherError) {
  EXPECT_FALSE(ActiveIn(absl::UnavailableError("away")).has_value());
}

TEST(AddressForBrowsers, IsNoneWhereThePortIsNotKnown) {
  EXPECT_EQ(AddressForBrowsers("127.0.0.1:7480"), "http://127.0.0.1:7480");
  EXPECT_EQ(AddressForBrowsers("127.0.0.1:0"), "");
  EXPECT_EQ(AddressForBrowsers(""), "");
}

}  // namespace
}  // namespace siding::page
