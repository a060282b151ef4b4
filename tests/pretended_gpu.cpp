// The device "cuda:0" for a torch without CUDA: autograd asks it for streams and generators.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;
using c10::Stream;

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static Device only() { return Device(DeviceType::CUDA, 0); }
  static Stream stream() { return Stream(Stream::DEFAULT, only()); }
  DeviceType type() const override { return DeviceType::CUDA; }
  Device exchangeDevice(Device) const override { return only(); }
  Device getDevice() const override { return only(); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return stream(); }
  Stream getNewStream(Device, int) const override { return stream(); }
  Stream getDefaultStream(Device) const override { return stream(); }
  Stream exchangeStream(Stream) const override { return stream(); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

namespace at {

struct CUDAHooks final : CUDAHooksInterface {  // torch looks for a class of this name
  explicit CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  Generator getNewGenerator(DeviceIndex) const override { return detail::createCPUGenerator(); }
  const Generator& getDefaultGenerator(DeviceIndex) const override {
    static const Generator generator = detail::createCPUGenerator();
    return generator;
  }
};

REGISTER_CUDA_HOOKS(CUDAHooks)

}  // namespace at
