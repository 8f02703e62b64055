#include "controller/notify/webhook.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <stop_token>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace siding {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

class WebhookTest : public testing::Test {
 protected:
  absl::Status Tell(const std::vector<v1::Event>& events) {
    const Receiver::Told told = TellSome(events);
    EXPECT_EQ(told.count, told.why.ok() ? events.size() : 0u);
    return told.why;
  }
  Receiver::Told TellSome(const std::vector<v1::Event>& events) {
    const HttpPost post = [this](const HttpCall& call, std::stop_token) {
      call_ = call;
      return answer_;
    };
    return NewWebhook(post, "secret", "00000000000000ab", clock_)->Tell(events, {});
  }
  static v1::Event Made(int64_t seq, const std::string& kind) {
    v1::Event event;
    event.set_seq(seq);
    event.set_kind(kind);
    return event;
  }

  FakeClock clock_{FromMicros(1'800'000'000'500'000)};
  absl::StatusOr<int> answer_ = 200;
  HttpCall call_;
};

TEST_F(WebhookTest, OneCallHasAllEvents) {
  ASSERT_EQ(Tell({Made(7, "submitted"), Made(8, "place")}), absl::OkStatus());
  const auto body = nlohmann::json::parse(call_.body);
  EXPECT_EQ(body["cluster"], "00000000000000ab");
  ASSERT_EQ(body["events"].size(), 2u);
  EXPECT_EQ(body["events"][0]["kind"], "submitted");
  EXPECT_EQ(body["events"][1]["seq"], "8");
}

TEST_F(WebhookTest, TheCallIsSigned) {
  ASSERT_EQ(Tell({Made(7, "submitted")}), absl::OkStatus());
  EXPECT_THAT(call_.headers, Contains(Pair("Siding-Timestamp", "1800000000")));
  EXPECT_THAT(call_.headers,
              Contains(Pair("Siding-Signature", "sha256=" + Sign("secret", 1'800'000'000, call_.body))));
}

// By: printf '1800000000.{}' | openssl dgst -sha256 -hmac secret
TEST(Sign, IsWhatOthersCompute) {
  EXPECT_EQ(Sign("secret", 1'800'000'000, "{}"),
            "bb7079132825ac793cea8c013c1dd24d926b9b02132245b10588d9e5c0df70d7");
}

TEST_F(WebhookTest, AnAnswerThatIsNoneOfSuccessIsAnError) {
  for (const int code : {199, 301, 400, 410, 503}) {
    answer_ = code;
    EXPECT_THAT(std::string(Tell({Made(7, "submitted")}).message()), HasSubstr("it answered"));
  }
  answer_ = 204;
  EXPECT_EQ(Tell({Made(7, "submitted")}), absl::OkStatus());
}

TEST_F(WebhookTest, NoAnswerIsAnError) {
  answer_ = absl::UnavailableError("nobody is there");
  EXPECT_EQ(Tell({Made(7, "submitted")}), absl::UnavailableError("nobody is there"));
}

// By libcurl, to somebody on this machine.
class HttpPostTest : public testing::Test {
 protected:
  HttpPostTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_.get(), 5), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port), "/events?key=secret");
  }
  // Reads a call up to the end of its body, and answers. Empty: with nothing, and the connection stays.
  std::future<std::string> Answer(const std::string& answer) {
    return std::async(std::launch::async, [this, answer] {
      peer_.Reset(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::string call;
      while (call.find("the body") == std::string::npos) {
        char bytes[4096];
        const ssize_t size = recv(peer_.get(), bytes, sizeof bytes, 0);
        if (size <= 0) break;
        call.append(bytes, static_cast<size_t>(size));
      }
      send(peer_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      return call;
    });
  }
  absl::StatusOr<int> Post(std::stop_token stop = {}) const {
    return NewHttpPost(url_, "").value()({{{"Siding-Timestamp", "1"}}, "the body"}, std::move(stop));
  }

  UniqueFd listener_, peer_;
  std::string url_;
};

TEST_F(HttpPostTest, TheCallAndItsAnswer) {
  auto call = Answer("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(Post().value(), 204);
  EXPECT_THAT(call.get(), testing::AllOf(testing::StartsWith("POST /events?key=secret HTTP/1.1\r\n"),
                                         HasSubstr("\r\nSiding-Timestamp: 1\r\n"),
                                         testing::EndsWith("\r\n\r\nthe body")));
}

TEST_F(HttpPostTest, ARedirectionIsAnAnswer) {
  auto call = Answer("HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(Post().value(), 301);
}

TEST_F(HttpPostTest, WhoDoesNotAnswerIsNotWaitedForWhenItIsToStop) {
  auto call = Answer("");
  std::stop_source stop;
  auto posted = std::async(std::launch::async, [&] { return Post(stop.get_token()); });
  EXPECT_THAT(call.get(), HasSubstr("the body"));
  stop.request_stop();
  EXPECT_THAT(std::string(posted.get().status().message()), HasSubstr("aborted"));
}

TEST_F(HttpPostTest, ErrorsDoNotNameTheAddress) {
  listener_.Reset();
  EXPECT_THAT(std::string(Post().status().message()), testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace siding
