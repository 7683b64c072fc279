// Sends and receives messages over MPI.
#include "exec/mpi/mpi_transport.h"

#include <algorithm>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

Error mpi_failure(const std::string& what) {
  return Error(Fault::kMachine, "the backend mpi: " + what);
}

}  // namespace

/// MPI's own plugins look up MPI's symbols in the whole program, so the module's symbols must be
/// global.
MpiLibrary::MpiLibrary(const std::string& module_file) {
  const ModuleFile file{module_file, "the backend mpi", "",
                        ": its module cannot be loaded: install libopenmpi-dev and build again",
                        /*is_global=*/true};
  void* const module = load_module(file);
  send = find_function<decltype(bubblescope_mpi_send)>(module, file, "bubblescope_mpi_send");
  find = find_function<decltype(bubblescope_mpi_find)>(module, file, "bubblescope_mpi_find");
  receive =
      find_function<decltype(bubblescope_mpi_receive)>(module, file, "bubblescope_mpi_receive");
  is_done =
      find_function<decltype(bubblescope_mpi_is_done)>(module, file, "bubblescope_mpi_is_done");
  close = find_function<decltype(bubblescope_mpi_close)>(module, file, "bubblescope_mpi_close");
  world = find_function<decltype(bubblescope_mpi_open)>(module, file, "bubblescope_mpi_open")();
  if (world.error != nullptr) throw mpi_failure(world.error);
}

MpiTransport::MpiTransport(const MpiLibrary& library)
    : Transport({library.world.rank, library.world.size}, /*is_relayed=*/false),
      library_(library) {}

void MpiTransport::send(std::int32_t to, MessageTag tag, Blob payload) {
  const std::lock_guard lock(mutex_);
  drop_sent();
  Transfer& transfer = sent_.emplace_back(Transfer{nullptr, tag, {to, std::move(payload)}});
  const Blob& kept = transfer.message.payload;
  const BubblescopeMpiTransfer begun =
      library_.send(to, static_cast<int>(tag), kept.data(), kept.size());
  if (begun.error != nullptr) throw mpi_failure(begun.error);
  transfer.mpi_request = begun.mpi_request;
}

void MpiTransport::send_all(MessageTag tag, const Blob& payload) {
  for (std::int32_t peer = 0; peer < self().count; ++peer)
    if (peer != self().rank && !is_gone(peer)) send(peer, tag, payload);
}

void MpiTransport::drop_sent() {
  std::erase_if(sent_, [this](const Transfer& transfer) {
    return transfer.mpi_request != nullptr && library_.is_done(transfer.mpi_request) != 0;
  });
}

std::vector<Message> MpiTransport::poll(MessageTag tag) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};
  receive_found(tag);
  if (!sent_.empty()) drop_sent();
  std::vector<Message> messages;
  for (auto transfer = arriving_.begin(); transfer != arriving_.end();) {
    const int done = transfer->tag == tag ? library_.is_done(transfer->mpi_request) : 0;
    if (done < 0)
      throw mpi_failure("a message of rank " + std::to_string(transfer->message.from) +
                        " could not be received");
    if (done == 0) {
      ++transfer;
      continue;
    }
    messages.push_back(std::move(transfer->message));
    transfer = arriving_.erase(transfer);
  }
  return messages;
}

void MpiTransport::receive_found(MessageTag tag) {
  for (;;) {
    const BubblescopeMpiMessage found = library_.find(static_cast<int>(tag));
    if (found.error != nullptr) throw mpi_failure(found.error);
    if (found.message == nullptr) return;
    Transfer& transfer =
        arriving_.emplace_back(Transfer{nullptr, tag, {found.peer, Blob(found.size)}});
    const BubblescopeMpiTransfer begun = library_.receive(found, transfer.message.payload.data());
    if (begun.error != nullptr) throw mpi_failure(begun.error);
    transfer.mpi_request = begun.mpi_request;
  }
}

Gathered MpiTransport::gather(Blob own, const ShouldAbort& should_abort) {
  send_all(MessageTag::kGather, blob_of(++gathers_, own));
  std::vector<std::optional<Blob>> all(static_cast<std::size_t>(self().count));
  all[static_cast<std::size_t>(self().rank)] = std::move(own);
  std::vector<Message> messages = std::exchange(early_, {});
  for (const PollBackoff backoff;;) {
    for (const Message& message : messages) take_gathered(message, all);
    if (is_complete(all)) break;
    messages = poll(MessageTag::kGather);
    if (!messages.empty()) continue;
    if (should_abort()) break;
    wait(backoff);
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank]) note_gone(static_cast<std::int32_t>(rank));
  return {std::move(all), gone()};
}

void MpiTransport::take_gathered(const Message& message, std::vector<std::optional<Blob>>& all) {
  BlobReader reader(message.payload);
  const auto number = reader.read<std::uint64_t>();
  if (number == gathers_)
    all[static_cast<std::size_t>(message.from)] = reader.read_all<std::byte>();
  else if (number > gathers_)
    early_.push_back(message);
}

/// Whether every rank that is not gone has answered.
bool MpiTransport::is_complete(const std::vector<std::optional<Blob>>& all) const {
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (!all[rank] && !is_gone(static_cast<std::int32_t>(rank))) return false;
  return true;
}

void MpiTransport::close() {
  const std::lock_guard lock(mutex_);
  library_.close();
}

MpiTransport& open_mpi() {
  static MpiTransport transport(MpiLibrary(find_module(BUBBLESCOPE_MPI_MODULE)));
  return transport;
}

}  // namespace bubblescope::exec
