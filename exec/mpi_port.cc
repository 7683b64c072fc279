// Letters, and loading the module.
#include "exec/mpi_port.h"

#include <algorithm>
#include <utility>

#include "exec/module.h"
#include "exec/step_clock.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

Error failure(const std::string& what) {
  return Error(Fault::kMachine, "the backend mpi: " + what);
}

}  // namespace

/// The module stays open for good: MPI's threads and exit handlers live in it.
MpiPort::MpiPort(const std::string& module_file) {
  // MPI's own plugins look for MPI's names in the whole program.
  const ModuleFile file{module_file, "the backend mpi", "",
                        ": its module cannot be loaded: install libopenmpi-dev and build again",
                        /*is_global=*/true};
  void* const module = load_module(file);
  const auto open =
      find_function<decltype(bubblescope_mpi_open)>(module, file, "bubblescope_mpi_open");
  send_ = find_function<decltype(bubblescope_mpi_send)>(module, file, "bubblescope_mpi_send");
  find_ = find_function<decltype(bubblescope_mpi_find)>(module, file, "bubblescope_mpi_find");
  receive_ =
      find_function<decltype(bubblescope_mpi_receive)>(module, file, "bubblescope_mpi_receive");
  is_done_ =
      find_function<decltype(bubblescope_mpi_is_done)>(module, file, "bubblescope_mpi_is_done");
  close_ = find_function<decltype(bubblescope_mpi_close)>(module, file, "bubblescope_mpi_close");
  world_ = open();
  if (world_.error != nullptr) throw failure(world_.error);
  gone_.assign(static_cast<std::size_t>(world_.size), false);
}

void MpiPort::send(std::int32_t peer, Channel channel, Blob bytes) {
  const std::lock_guard lock(mutex_);
  drop_sent();
  Transfer& transfer = sent_.emplace_back(Transfer{nullptr, channel, {peer, std::move(bytes)}});
  const Blob& kept = transfer.letter.bytes;
  const BubblescopeMpiTransfer begun =
      send_(peer, static_cast<int>(channel), kept.data(), kept.size());
  if (begun.error != nullptr) throw failure(begun.error);
  transfer.ticket = begun.ticket;
}

void MpiPort::send_all(Channel channel, const Blob& bytes) {
  for (std::int32_t peer = 0; peer < count(); ++peer)
    if (peer != rank() && !is_gone(peer)) send(peer, channel, bytes);
}

void MpiPort::drop_sent() {
  std::erase_if(sent_, [this](const Transfer& transfer) {
    return transfer.ticket != nullptr && is_done_(transfer.ticket) != 0;
  });
}

std::vector<Letter> MpiPort::look(Channel channel, std::size_t most) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};
  receive_found(channel);
  if (!sent_.empty()) drop_sent();
  std::vector<Letter> letters;
  for (auto transfer = coming_.begin(); transfer != coming_.end();) {
    const bool mine = transfer->channel == channel && letters.size() < most;
    const int done = mine ? is_done_(transfer->ticket) : 0;
    if (done < 0)
      throw failure("a message of rank " + std::to_string(transfer->letter.peer) +
                    " could not be received");
    if (done == 0) {
      ++transfer;
      continue;
    }
    letters.push_back(std::move(transfer->letter));
    transfer = coming_.erase(transfer);
  }
  return letters;
}

void MpiPort::receive_found(Channel channel) {
  for (;;) {
    const BubblescopeMpiMessage found = find_(static_cast<int>(channel));
    if (found.error != nullptr) throw failure(found.error);
    if (found.message == nullptr) return;
    Transfer& transfer =
        coming_.emplace_back(Transfer{nullptr, channel, {found.peer, Blob(found.size)}});
    const BubblescopeMpiTransfer begun = receive_(found, transfer.letter.bytes.data());
    if (begun.error != nullptr) throw failure(begun.error);
    transfer.ticket = begun.ticket;
  }
}

std::vector<std::optional<Blob>> MpiPort::share(Blob own, const std::function<bool()>& gives_up) {
  BlobWriter writer;
  writer.write(++shares_);
  writer.write_all(own);
  send_all(Channel::kShare, writer.take());
  std::vector<std::optional<Blob>> all(gone_.size());
  all[static_cast<std::size_t>(rank())] = std::move(own);
  const auto is_missing = [&](std::size_t peer) { return !all[peer] && !gone_[peer]; };
  const auto missing = [&] {
    for (std::size_t peer = 0; peer < all.size(); ++peer)
      if (is_missing(peer)) return true;
    return false;
  };
  std::vector<Letter> letters = std::exchange(early_, {});
  for (const Patience patience; missing();) {
    for (Letter& letter : letters) {
      BlobReader reader(letter.bytes);
      const auto number = reader.read<std::uint64_t>();
      if (number == shares_)
        all[static_cast<std::size_t>(letter.peer)] = reader.read_all<std::byte>();
      else if (number > shares_)
        early_.push_back(std::move(letter));
    }
    if (!missing()) break;
    letters = look(Channel::kShare);
    if (!letters.empty()) continue;
    if (gives_up()) break;
    patience.wait();
  }
  for (std::size_t peer = 0; peer < all.size(); ++peer)
    if (is_missing(peer)) gone_[peer] = true;
  return all;
}

bool MpiPort::all_answer() const {
  return std::none_of(gone_.begin(), gone_.end(), [](bool gone) { return gone; });
}

void MpiPort::close() {
  const std::lock_guard lock(mutex_);
  close_();
}

MpiPort& open_mpi() {
  static MpiPort port(find_module(BUBBLESCOPE_MPI_MODULE));
  return port;
}

}  // namespace bubblescope
