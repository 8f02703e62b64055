// siding-test-caller ADDRESS CA CERTIFICATE KEY METHOD [CREDENTIAL]: makes one call of a controller as
// any client, without checking its own files first, so that tests see what the controller makes of them.
//
// ADDRESS is HOST:PORT, or unix:PATH without TLS. Empty certificate and key: none; the credential is MUNGE's.
// METHOD is SERVICE/NAME within siding.v1, such as Siding/ListNodes. Each line of stdin is a message that is
// sent, as JSON; each line of stdout before the last is one that came. A stream stays open until the end of
// stdin. The last line is the call's code and message.
//
// siding-test-caller --methods: every method of every service that a controller has, one a line.
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "common/munge/munge.h"
#include "common/mutex.h"
#include "siding/v1/agent.pb.h"
#include "siding/v1/api.pb.h"

namespace siding {
namespace {

namespace pb = google::protobuf;
namespace tls = grpc::experimental;

std::shared_ptr<grpc::ChannelCredentials> Credentials(const std::string& ca, const std::string& certificate,
                                                      const std::string& key) {
  std::vector<tls::IdentityKeyCertPair> own;
  if (!certificate.empty()) own.push_back({*ReadFile(key), *ReadFile(certificate)});
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<tls::StaticDataCertificateProvider>(*ReadFile(ca), own));
  options.watch_root_certs();
  if (!own.empty()) options.watch_identity_key_cert_pairs();
  return tls::TlsCredentials(options);
}

std::unique_ptr<pb::Message> NewMessage(const pb::Descriptor* type) {
  return std::unique_ptr<pb::Message>(pb::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

grpc::ByteBuffer Packed(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Unpacked(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// One call, of any kind: to gRPC a plain one is a stream of one message each way.
class AnyCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  AnyCall(grpc::GenericStub& stub, const pb::MethodDescriptor& method, const std::string& credential)
      : method_(method) {
    if (!credential.empty()) context_.AddMetadata(kMungeMetadata, credential);
    const std::string path = "/" + method.service()->full_name() + "/" + method.name();
    stub.PrepareBidiStreamingCall(&context_, path, {}, this);
    AddHold();  // writes come from another thread
    StartRead(&incoming_);
    StartCall();
  }

  // False: the call has ended.
  bool Send(const std::string& json) {
    const auto message = NewMessage(method_.input_type());
    if (const auto parsed = pb::util::JsonStringToMessage(json, message.get()); !parsed.ok()) {
      std::cerr << json << ": " << parsed.ToString() << "\n";
      exit(2);
    }
    outgoing_ = Packed(message->SerializeAsString());
    MutexLock lock(mutex_);
    written_ = false;
    StartWrite(&outgoing_);
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return written_; });
    return ok_;
  }
  void NoMore() {
    StartWritesDone();
    RemoveHold();
  }
  grpc::Status Await() {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
    return status_;
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const auto message = NewMessage(method_.output_type());
    std::string json;
    if (message->ParseFromString(Unpacked(incoming_)) && pb::util::MessageToJsonString(*message, &json).ok())
      std::cout << json << std::endl;
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    written_ = true;
    ok_ = ok;
    changed_.NotifyAll();
  }
  void OnDone(const grpc::Status& status) override {
    MutexLock lock(mutex_);
    done_ = true;
    status_ = status;
    changed_.NotifyAll();
  }

 private:
  const pb::MethodDescriptor& method_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_, outgoing_;

  Mutex mutex_;
  CondVar changed_;
  bool written_ ABSL_GUARDED_BY(mutex_) = false;
  bool ok_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

const std::vector<const pb::ServiceDescriptor*>& Services() {
  static const auto& services = *new std::vector<const pb::ServiceDescriptor*>{
      v1::JobRef::descriptor()->file()->service(0), v1::TaskRef::descriptor()->file()->service(0)};
  return services;
}

int ListMethods() {
  for (const pb::ServiceDescriptor* service : Services()) {
    for (int i = 0; i < service->method_count(); ++i)
      std::cout << service->name() << "/" << service->method(i)->name() << "\n";
  }
  return 0;
}

const pb::MethodDescriptor* FindMethod(const std::string& name) {
  const std::string full = "siding.v1." + absl::StrReplaceAll(name, {{"/", "."}});
  return pb::DescriptorPool::generated_pool()->FindMethodByName(full);
}

int Main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string("--methods")) return ListMethods();
  const pb::MethodDescriptor* const method = argc < 6 ? nullptr : FindMethod(argv[5]);
  if (method == nullptr || argc > 7) {
    std::cerr
        << "usage: siding-test-caller ADDRESS CA CERTIFICATE KEY SERVICE/METHOD [CREDENTIAL] | --methods\n";
    return 2;
  }
  const auto credentials = absl::StartsWith(argv[1], "unix:") ? grpc::InsecureChannelCredentials()
                                                              : Credentials(argv[2], argv[3], argv[4]);
  grpc::GenericStub stub(grpc::CreateChannel(argv[1], credentials));
  AnyCall call(stub, *method, argc == 7 ? argv[6] : "");
  for (std::string json; std::getline(std::cin, json);) {
    if (!call.Send(json)) break;
  }
  call.NoMore();
  const grpc::Status status = call.Await();
  std::cout << status.error_code() << " " << status.error_message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main(argc, argv); }
