"""What do Mixer, ConvMixer and hybrids do in the place of attention?"""
