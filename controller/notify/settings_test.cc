#include "controller/notify/settings.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;

ReceiverSettings Good() {
  return {.name = "pager", .url = "https://hooks.example.org/x", .secret = "/etc/siding/key"};
}

std::string ErrorOf(const ReceiverSettings& settings) {
  const absl::Status status = Check(settings);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ReceiverSettings, AWebhookAndALogAreGood) {
  EXPECT_EQ(Check(Good()), absl::OkStatus());
  EXPECT_EQ(Check({.name = "log", .log = EventLogKind::kJournald}), absl::OkStatus());
}

// It is a file's.
TEST(ReceiverSettings, ANameIsOneOfLettersAndDigits) {
  for (const char* name : {"", "..", "a/b", "a b"}) {
    ReceiverSettings bad = Good();
    bad.name = name;
    EXPECT_THAT(ErrorOf(bad), HasSubstr("expected up to 64 letters"));
  }
}

TEST(ReceiverSettings, OneIsEitherOfTheTwo) {
  ReceiverSettings both = Good();
  both.log = EventLogKind::kSyslog;
  EXPECT_THAT(ErrorOf(both), HasSubstr("expected either url, or log"));
  EXPECT_THAT(ErrorOf({.name = "none"}), HasSubstr("expected either url, or log"));
}

TEST(ReceiverSettings, CallsAreSigned) {
  ReceiverSettings unsigned_ = Good();
  unsigned_.secret.clear();
  EXPECT_THAT(ErrorOf(unsigned_), HasSubstr("pager: expected secret"));
}

TEST(ReceiverSettings, NothingGoesInThePlainOverANetwork) {
  ReceiverSettings settings = Good();
  for (const char* good :
       {"https://hooks.example.org/siding", "https://hooks.example.org", "https://[fd00::1]:8443/x?key=1",
        "http://127.0.0.1:9000/", "http://[::1]:9000/x", "http://localhost/x"}) {
    settings.url = good;
    EXPECT_EQ(Check(settings), absl::OkStatus()) << good;
  }
  for (const char* bad : {"hooks.example.org", "http://hooks.example.org/", "ftp://127.0.0.1/", "https://",
                          "https:///x", "http://127.example.org/", "http://localhost.example.org/",
                          "http://127.0.0.1\\@evil.org/", "http://127.0.0.1@evil.org/", "https://a b/",
                          "https://[fd00::1", "https://ada:pw@hooks.example.org/"}) {
    settings.url = bad;
    EXPECT_THAT(ErrorOf(settings), HasSubstr("pager: url: expected https://")) << bad;
  }
}

TEST(ReceiverSettings, ALogHasNoSecret) {
  EXPECT_THAT(ErrorOf({.name = "log", .secret = "/x", .log = EventLogKind::kSyslog}),
              HasSubstr("with url only"));
}

}  // namespace
}  // namespace siding
