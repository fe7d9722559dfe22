package example;

/** Fields that a parcelable has no default for. */
@Descriptor(value="example.Old")
parcelable Owned {
    IBinder object;
    @nullable IBinder none;
    IEcho echo;
    ParcelFileDescriptor file;
    @nullable ParcelFileDescriptor[] files;
}
